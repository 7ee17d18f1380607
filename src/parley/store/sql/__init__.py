"""What both stores share: rows, digests and SQL that SQLite and PostgreSQL both understand."""
