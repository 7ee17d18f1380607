"""Reads `.env` files: settings and keys come from the environment, else from `.env` in the current
folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

from parley.errors import UsageError

LINE = re.compile(
    r"""\s*(?:export\s+)?(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*(?:(?<=\s)\#.*)?$"""
)


def find_setting(name: str) -> str | None:
    """A value from the environment, else from `.env` in the current folder. Values in `.env` are
    used as they are: the file may come from others, and must not read other variables."""
    if found := os.environ.get(name):
        return found
    found = read_env_file(Path.cwd()).get(name) or None
    if found and "${" in found:
        raise UsageError(
            f".env: {name} refers to another variable, which is not supported: write the value "
            "itself, without ${…}"
        )
    return found


def read_env_file(folder: Path) -> dict[str, str]:
    """The assignments in a folder's `.env`. Other lines are left out."""
    try:
        lines = read_lines(folder)
    except (OSError, UnicodeDecodeError):
        return {}
    found = [LINE.match(line) for line in lines if not is_comment(line)]
    return {match[1]: match[2] or match[3] or match[4] or "" for match in found if match}


def find_env_faults(folder: Path | None = None) -> list[str]:
    """Messages about lines of `.env` that cannot be read. They quote nothing, as it may be
    secret."""
    folder = folder or Path.cwd()
    if not (folder / ".env").is_file():
        return []
    try:
        lines = read_lines(folder)
    except (OSError, UnicodeDecodeError):
        return [".env is not UTF-8 text, so Parley ignores this file: save it as UTF-8"]
    return [
        f".env, line {number} does not have the form NAME=value, so Parley ignores this line"
        for number, line in enumerate(lines, 1)
        if line.strip() and not is_comment(line) and not LINE.match(line)
    ]


def read_lines(folder: Path) -> list[str]:
    return (folder / ".env").read_text(encoding="utf-8-sig").splitlines()


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")
