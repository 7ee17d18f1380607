"""Replies from a file, in order; the last one is repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parley.errors import UsageError, unknown_name
from parley.match.protocol import Call
from parley.rules.pool import View
from parley.rules.task import Task


class Scripted:
    """Gives fixed replies in order. It uses only the number of its replies so far, so that it can
    be resumed."""

    sees_item: bool = False

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines

    async def reply(self, view: View, call: Call) -> str:
        return self._lines[min(view.reply_count, len(self._lines) - 1)]

    async def close(self) -> None:
        pass


def make(name: str, options: Mapping[str, Any], task: type[Task]) -> Scripted:
    if options:
        raise unknown_name(f"option of scripted/{name}:", next(iter(options)), ())
    try:
        text = Path(name).expanduser().read_text(encoding="utf-8-sig", errors="replace")
    except (OSError, ValueError, RuntimeError) as wrong:
        raise UsageError(
            f"scripted/{name}: the file cannot be read: {getattr(wrong, 'strerror', None) or wrong}"
        ) from None
    whole = Path(name).suffix.lower() == ".json"
    lines = (
        parse_reply_list(text, name)
        if whole
        else [parse_reply_line(line) for line in text.split("\n") if line.strip()]
    )
    if not lines:
        raise UsageError(f"scripted/{name}: the file has no replies: write one reply per line")
    return Scripted(lines)


def parse_reply_list(text: str, name: str) -> list[str]:
    """The replies of a JSON file: a list of texts, or of objects that are themselves the
    replies."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise UsageError(f"scripted/{name}: the file is not valid JSON: {wrong}") from None
    if not isinstance(found, list):
        raise UsageError(
            f"scripted/{name}: the file must be a JSON list of replies, not {type(found).__name__}"
        )
    return [
        reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        for reply in found
    ]


def parse_reply_line(line: str) -> str:
    """The reply on one line: a JSON string is decoded, so that it can have line breaks; anything
    else is used as it is."""
    if line.lstrip().startswith('"'):
        try:
            found = json.loads(line)
        except ValueError:
            return line
        return found if isinstance(found, str) else line
    return line
