"""Text from models on a terminal: it cannot control the terminal, and every line is marked."""

from __future__ import annotations

from parley.tables import break_paragraph, make_visible, text_width


def wrap_text(text: str, width: int, before: str = "") -> str:
    """Make control characters visible and wrap the text, with a mark before each line."""
    room = max(10, width - text_width(before))
    lines = [
        line
        for paragraph in make_visible(text).split("\n")
        for line in break_paragraph(paragraph, room)
    ]
    return "\n".join((before + line).rstrip() for line in lines)
