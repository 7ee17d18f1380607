"""Who can take a seat: one file per kind. A participant sees its own view and nothing else."""
