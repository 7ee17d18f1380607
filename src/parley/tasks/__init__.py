"""The tasks, one file or folder each. Parley finds them here; nothing is registered."""
