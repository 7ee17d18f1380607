"""Retrievers: every file without an underscore is one, under its own name. Its `make` takes the
text after the slash, or nothing."""
