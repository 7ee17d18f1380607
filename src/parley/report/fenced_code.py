"""Fenced blocks in what models say: which parts of a text are code."""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r" {0,3}(`{3,})([^`]*)")


def split_fences(text: str, inside: bool = False) -> Iterator[tuple[bool, str]]:
    """The parts of a text between fences, each with whether it is code. A block that is not closed
    ends with the text; `inside` says that the text begins within a block."""
    part: list[str] = []
    opening = "```" if inside else ""
    for line in text.split("\n"):
        found = FENCE.fullmatch(line.rstrip())
        closes = found is not None and not found[2].strip() and len(found[1]) >= len(opening)
        if found is None or (opening and not closes):
            part.append(line)
            continue
        yield bool(opening), "\n".join(part)
        part, opening = [], "" if opening else found[1]
    yield bool(opening), "\n".join(part)


def ends_in_code(text: str) -> bool:
    """Whether a text ends within a fenced block."""
    *_, (is_code, _) = split_fences(text)
    return is_code
