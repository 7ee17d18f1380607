"""Runs in a PostgreSQL database: many runs, every table keyed by its run."""
