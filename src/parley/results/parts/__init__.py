"""The tables and breakdowns of a result, one file each."""
