"""Where in a text a row of the table of claims can begin.

There are some hundred rows, and almost none fits a given text. So every row is filed under the
words or marks that it can begin with, and is tried only where the text has one of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

NAME, EDGE = "\ue011", "\ue012"  # keys of rows that begin with a name, or at the edge of a clause
LONGEST = 5  # letters of a word by which it is filed
WORD = re.compile(r"(?<=\\)[nrt]|[a-z]+|[^\W\d_a-z]+")
EDGES = re.compile(r"\A|(?<=[^\w\x20\t])|(?<=\d)|(?<=\\[nr])")
PLACE = re.compile(
    r"@{1,2}(?:own|model|maker|sure|speaks|any(?:body)?|table|cast|byline|named|lab|clear|person|someone)"
)
QUANTIFIER = re.compile(r"(?:[?*+]|\{(?P<least>\d*),?\d*\})[?+]?")


class Begins(NamedTuple):
    """The keys of what an expression can begin with, whether it can be empty, and its end."""

    keys: frozenset[str]
    empty: bool
    end: int


class UnknownBegin(Exception):
    """An expression that can begin with too many things."""


def keys_of_row(row: str) -> frozenset[str] | None:
    """What a row can begin with; None if that cannot be said."""
    try:
        begins = read_choice(row, 0)
    except UnknownBegin:
        return None
    return None if begins.empty else begins.keys


def read_choice(row: str, at: int) -> Begins:
    """Alternatives, up to the end of their group."""
    keys: frozenset[str] = frozenset()
    empty = False
    while True:
        branch = read_sequence(row, at)
        keys, empty, at = keys | branch.keys, empty or branch.empty, branch.end
        if at >= len(row) or row[at] == ")":
            return Begins(keys, empty, at)
        at += 1


def read_sequence(row: str, at: int) -> Begins:
    """One alternative: its first part, and the next ones as long as these can be empty."""
    keys: frozenset[str] = frozenset()
    empty = True
    while at < len(row) and row[at] not in "|)":
        if not empty:
            at = skip_part(row, at)
            continue
        part = read_part(row, at)
        keys, empty, at = keys | part.keys, part.empty, part.end
    return Begins(keys, empty, at)


def read_part(row: str, at: int) -> Begins:
    """A group, a name, an edge or a word, with its quantifier."""
    if row.startswith((r"\A", "(?<="), at):
        return Begins(frozenset((EDGE,)), False, skip_part(row, at))
    if row.startswith(("(?<!", "(?!", "(?="), at):
        return Begins(frozenset(), True, skip_part(row, at))
    if row[at] == "(":
        inner = read_choice(
            row, row.index(":" if row[at + 1] == "?" and row[at + 2] != "P" else ">", at) + 1
        )
        return quantify(row, inner._replace(end=inner.end + 1))
    if place := PLACE.match(row, at):
        return Begins(frozenset((NAME,)), False, place.end())
    if row[at] in "[.~ \\":
        raise UnknownBegin
    word = WORD.match(row.lower(), at)
    if word is None or is_unspaced(row[at]):
        return quantify(row, Begins(frozenset(row[at]), False, at + 1))
    end = word.end()
    if QUANTIFIER.match(row, end):  # it is about the last letter alone
        end -= 1
        if end == at:
            raise UnknownBegin
    whole = row.startswith((" ", "'"), end)
    return Begins(frozenset((word_key(row[at:end].lower(), whole),)), False, end)


def quantify(row: str, part: Begins) -> Begins:
    """A part with the quantifier after it."""
    found = QUANTIFIER.match(row, part.end)
    if found is None:
        return part
    least = found["least"] == "0" if found["least"] is not None else found[0][0] in "?*"
    return Begins(part.keys, part.empty or least, found.end())


def skip_part(row: str, at: int) -> int:
    """The end of a part that is not looked at."""
    if row[at] == "\\":
        return at + 2
    if row[at] == "[":
        at += 2 if row[at + 1] != "^" else 3
        while row[at] != "]":
            at += 2 if row[at] == "\\" else 1
        return at + 1
    if row[at] != "(":
        return at + 1
    at += 1
    while row[at] != ")":
        at = skip_part(row, at)
    return at + 1


def is_unspaced(char: str) -> bool:
    """Whether a letter belongs to a script that puts no spaces between words, or particles after
    them."""
    return char >= "\u0e00"


def word_key(word: str, whole: bool) -> str:
    return word + " " if whole and len(word) < LONGEST else word[:LONGEST]


def find_starts(
    lowered: str, start: int, names: list[int], marks: re.Pattern[str]
) -> Iterator[tuple[str, int]]:
    """What rows can begin with, and where it stands in a part of a text in small letters, up to the
    last name there."""
    end = names[-1] + 1
    for place in names:
        yield NAME, place
    for edge in EDGES.finditer(lowered, start, end):
        yield EDGE, edge.start()
    for found in WORD.finditer(lowered, start, end):
        word, place = found[0], found.start()
        yield word + " ", place
        for length in range(1, min(len(word), LONGEST) + 1):
            yield word[:length], place
    for mark in marks.finditer(lowered, start, end):
        yield mark[0], mark.start()
