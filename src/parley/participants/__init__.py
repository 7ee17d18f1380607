"""Participants that can take a seat, one file per kind. A participant sees only its own view."""
