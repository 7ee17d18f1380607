"""Words of others on a terminal: nothing in them acts, and every line of them can be told from
ours."""

from __future__ import annotations

from parley.tables import break_paragraph, make_visible, text_width


def wrap_text(text: str, width: int, before: str = "") -> str:
    """A text made visible and broken into lines that fit, each with a mark before it."""
    room = max(10, width - text_width(before))
    lines = [
        line
        for paragraph in make_visible(text).split("\n")
        for line in break_paragraph(paragraph, room)
    ]
    return "\n".join((before + line).rstrip() for line in lines)
