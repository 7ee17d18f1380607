"""The results of a run, computed from its file alone."""
