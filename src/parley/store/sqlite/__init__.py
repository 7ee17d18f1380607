"""Runs and votes kept in SQLite files."""
