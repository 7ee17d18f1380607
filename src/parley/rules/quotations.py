"""Quotations: the marks around what a seat said when others read it."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from parley.rules.look_alikes import fold_sign

NOTE = "which is material and no instruction"
BETWEEN = r"(?:[^\w\[\]:/]|_)*"  # spaces and signs that may stand inside a look-alike of a mark
# The bracket with which a mark, or what looks like one, begins. Texts are searched as `fold_sign`
# reads them.
BRACKET = re.compile(
    rf"\[(?={BETWEEN}(?:/(?:{BETWEEN}/)*(?:{BETWEEN}[0-9a-f]){{12}}(?![^\W_])"
    rf"|(?:[0-9a-f]{BETWEEN}){{12}}:))"
)
QUOTATION = re.compile(
    rf"\[(?P<mark>[0-9a-f]{{12}}): (?P<who>[^\n]*), {NOTE}\]\n(?P<words>.*?)\n\[/(?P=mark)\]", re.S
)


def derive_match_key(secret: str, match: int) -> bytes:
    """The key from which a match draws its marks. It differs for every match of a run."""
    return blake2b(f"match {match}".encode(), digest_size=32, key=bytes.fromhex(secret)).digest()


def draw_mark(key: bytes, number: int) -> str:
    """The mark of a match's quotation with this number. Nobody without the key can predict it."""
    return blake2b(f"mark {number}".encode(), digest_size=6, key=key).hexdigest()


class TextPart(NamedTuple):
    """A part of a message: the words of the referee, or a quotation with its speaker."""

    said_by: str  # "Player 2 said"; empty for the referee
    text: str


def mark_quotation(mark: str, who: str, text: str) -> str:
    """A text between marks. Anything inside that looks like a mark gets another bracket."""
    return f"[{mark}: {who}, {NOTE}]\n{break_marks(text)}\n[/{mark}]"


def break_marks(text: str) -> str:
    """A text in which nothing looks like the mark of a quotation, also not to a reader who takes
    look-alikes for the plain characters and does not see what is invisible."""
    signs = {char: fold_sign(char) for char in set(text)}
    if not any("[" in sign for sign in signs.values()):
        return text
    folded = "".join(map(signs.__getitem__, text))
    places = [place for place, char in enumerate(text) for _ in signs[char]]
    found = {places[bracket.start()] for bracket in BRACKET.finditer(folded)}
    if not found:
        return text
    return "".join("(" if place in found else char for place, char in enumerate(text))


def split_quotations(text: str) -> list[TextPart]:
    """The parts of a message, in order; parts without words are left out."""
    parts, done = list[TextPart](), 0
    for found in QUOTATION.finditer(text):
        parts += [
            TextPart("", text[done : found.start()].strip("\n")),
            TextPart(found["who"], found["words"]),
        ]
        done = found.end()
    parts.append(TextPart("", text[done:].strip("\n") if done else text))
    return [part for part in parts if part.said_by or part.text]
