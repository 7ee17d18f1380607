"""From what the user typed to a checked run."""
