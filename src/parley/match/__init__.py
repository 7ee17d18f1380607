"""Plays one match and records it. It knows seats, never models."""
