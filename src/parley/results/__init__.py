"""What a run has found, computed from its file alone."""
