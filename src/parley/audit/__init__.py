"""Checks a finished run from its record: fair, complete, replayable."""
