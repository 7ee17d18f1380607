"""The tasks: one file each. Their names are found by looking here; nothing is registered."""
