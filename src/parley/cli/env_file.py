"""A look at `.env` before keys are taken from it: what cannot be read there is told."""

from __future__ import annotations

from pathlib import Path

from parley.cli.progress_line import say
from parley.providers._secrets import LINE


def check_env(folder: Path | None = None) -> None:
    """Say which lines of `.env` here are no assignments; their words are not shown, they may be
    secret."""
    place = (folder or Path.cwd()) / ".env"
    if not place.is_file():
        return
    try:
        lines = place.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        say(".env cannot be read as text in UTF-8, so nothing is taken from it")
        return
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#") and not LINE.match(line):
            say(
                f".env, line {number}: wanted NAME=value, found something else, "
                f"so the line is left out"
            )
