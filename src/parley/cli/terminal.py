"""Words of others on a terminal: nothing in them acts, and every line of them can be told from
ours."""

from __future__ import annotations

import re

from parley.tables import make_visible, text_width

WHOLE = re.compile(
    r"\s+|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]|[^\s\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+"
)


def wrap_text(text: str, width: int, before: str = "") -> str:
    """A text made visible and broken into lines that fit, each with a mark before it."""
    room = max(10, width - text_width(before))
    lines = [
        line
        for paragraph in make_visible(text).split("\n")
        for line in break_paragraph(paragraph, room)
    ]
    return "\n".join((before + line).rstrip() for line in lines)


def break_paragraph(paragraph: str, room: int) -> list[str]:
    """One paragraph in lines: between words, between signs that are words by themselves, within a
    word that is too long."""
    lines, line, taken = [], "", 0
    for word in WHOLE.findall(paragraph):
        if taken + text_width(word) > room and line.strip():
            lines.append(line.rstrip())
            line, taken = "", 0
            if word.isspace():
                continue
        while text_width(word) > room:
            end = next(at for at in range(len(word), 0, -1) if text_width(word[:at]) <= room)
            lines.append(word[:end])
            word = word[end:]
        line, taken = line + word, taken + text_width(word)
    return [*lines, line]
