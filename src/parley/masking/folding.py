"""Text folded to the letters that a reader sees, with the way back to every original position.

A name can be written so that people read it and a search does not find it: with zero-width
characters, look-alikes from other scripts, tags, markdown, or spaces between its letters. Folding
undoes this. It only ever serves to look for something; what is shown or scored is never folded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from parley.rules.look_alikes import LOOK_ALIKES, fold_character

WORD = re.compile(r"[A-Za-zÀ-ɏͰ-ԯԱ-֏Ꭰ-Ᏼ]+")
MIXED = re.compile(r"[A-Za-z][Ͱ-ԯԱ-֏Ꭰ-Ᏼ]|[Ͱ-ԯԱ-֏Ꭰ-Ᏼ][A-Za-z]")
ENCODED = re.compile(
    r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|nbsp|shy|zwnj|zwj|lrm|rlm|amp|lt|gt|quot|apos);"
    r"|\\u[0-9a-fA-F]{4}|\\[nrt\"]"
)
ENTITIES = {
    "nbsp": " ", "shy": "", "zwnj": "", "zwj": "", "lrm": "", "rlm": "", "amp": "&", "lt": "<",
    "gt": ">", "quot": '"', "apos": "'",
}  # fmt: skip
ESCAPES = {"\\n": "\n", "\\r": "\n", "\\t": " ", '\\"': '"'}
MARKUP = re.compile(
    r"</?(?P<tag>[a-zA-Z][\w:-]{0,30})(?:\s[^<>]{0,300})?/?>|<!--\s{0,10}-->|<!--|-->"
    r"|\[(?=[^\[\]\n]{1,80}\]\()|\]\([^()\s]{0,300}\)|[*`]+|~~+|(?<![^\W_])_+|_+(?![^\W_])"
)
LINES = frozenset(("br", "p", "div", "li", "tr", "td", "h1", "h2", "h3", "h4", "pre", "hr"))
# Single letters and digits with something between them: G P T - 4 . 1, G.P.T., C-l-a-u-d-e
SPACED = re.compile(
    r"[A-Za-z](?=[ .\-_·•|/])(?<![^\W_][A-Za-z])(?:[ .\-_·•|/]{1,3}[A-Za-z0-9](?![^\W_])){2,}",
    re.ASCII,
)
TWO_SINGLE = re.compile(r"[ .\-_·•|/][A-Za-z0-9][ .\-_·•|/]{1,3}[A-Za-z0-9](?![^\W_])", re.ASCII)
SINGLE = re.compile(r"[A-Za-z0-9]")


class Edit(NamedTuple):
    """One replaced piece: where it stands in the new text, and where it stood in the old one."""

    start: int
    end: int
    old_start: int
    old_end: int


class Folded:
    """A folded text, and how its positions lead back to the original."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._stages: list[tuple[list[int], list[Edit]]] = []

    def substitute(self, pattern: re.Pattern[str], change: Callable[[re.Match[str]], str]) -> None:
        """Replace what a pattern finds, and remember where it stood."""
        pieces: list[str] = []
        edits: list[Edit] = []
        done = length = 0
        for found in pattern.finditer(self.text):
            new, (start, end) = change(found), found.span()
            if new == found[0]:
                continue
            pieces += (self.text[done:start], new)
            length += start - done + len(new)
            edits.append(Edit(length - len(new), length, start, end))
            done = end
        if edits:
            self.text = "".join((*pieces, self.text[done:]))
            self._stages.append(([edit.start for edit in edits], edits))

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the original text that a part of the folded text stands for."""
        for starts, edits in reversed(self._stages):
            start, end = step_back(starts, edits, start)[0], step_back(starts, edits, end - 1)[1]
        return start, end


def step_back(starts: list[int], edits: list[Edit], place: int) -> tuple[int, int]:
    """The span, one stage before, of the character at a place."""
    at = bisect_right(starts, place) - 1
    if at < 0:
        return place, place + 1
    edit = edits[at]
    if place < edit.end:
        return edit.old_start, edit.old_end
    old = edit.old_end + place - edit.end
    return old, old + 1


def fold_for_search(text: str, words: frozenset[str]) -> Folded:
    """Fold a text to what a reader sees. `words` are the names, in small letters and without marks:
    where letters must be judged by the word that they make, only these words are made."""
    folded = Folded(text)
    if "&" in text or "\\" in text:
        folded.substitute(ENCODED, decode_character)
    if not folded.text.isascii():
        fold_characters(folded, words)
    if has_markup(folded.text):
        folded.substitute(MARKUP, lambda found: replace_markup(found, words))
    if TWO_SINGLE.search(folded.text):  # far quicker than the whole pattern, and rarely found
        folded.substitute(SPACED, lambda run: close_letters(run[0], words))
    return folded


def has_markup(text: str) -> bool:
    """Whether a text has a sign with which markup begins or ends."""
    return (
        "<" in text
        or "*" in text
        or "`" in text
        or "~" in text
        or "_" in text
        or "+" in text
        or "]" in text
    )


def decode_character(found: re.Match[str]) -> str:
    """A character that is written as an entity or an escape."""
    code = found[0]
    if code.startswith("\\u"):
        return chr(int(code[2:], 16))
    if code.startswith("\\"):
        return ESCAPES[code]
    if not code.startswith("&#"):
        return ENTITIES[code[1:-1]]
    number = int(code[3:-1], 16) if code[2] in "xX" else int(code[2:-1])
    return chr(number) if number <= 0x10FFFF else code


def fold_characters(folded: Folded, words: frozenset[str]) -> None:
    """Compatible forms become plain, what cannot be seen goes, look-alikes become Latin letters."""
    present = set(folded.text)
    if odd := [char for char in present if not char.isascii() and fold_character(char) != char]:
        pattern = re.compile("[" + "".join(map(re.escape, odd)) + "]")
        folded.substitute(pattern, lambda found: fold_character(found[0]))
    if any(ord(char) in LOOK_ALIKES for char in present) and may_imitate(folded.text, words):
        folded.substitute(WORD, lambda found: latinise_word(found[0], words))


def may_imitate(text: str, words: frozenset[str]) -> bool:
    """Whether look-alikes stand beside Latin letters, or make up a name."""
    if MIXED.search(text):
        return True
    text = text.lower()
    latin = text.translate(LOOK_ALIKES)
    return any(latin.count(word) > text.count(word) for word in words if word in latin)


def latinise_word(word: str, words: frozenset[str]) -> str:
    """A word in which look-alikes stand among Latin letters, or make up a name, in Latin."""
    if word.isascii():
        return word
    latin = word.translate(LOOK_ALIKES)
    mixed = re.search("[A-Za-z]", word) is not None
    return latin if mixed or len(word) == 1 or latin.lower() in words else word


def replace_markup(found: re.Match[str], words: frozenset[str]) -> str:
    """What stands for a tag or a mark: a line break where it breaks the line, itself where it
    holds a name, else nothing."""
    tag = (found["tag"] or "").lower()
    if len(found[0]) > len(tag) + 3 and holds_name(found, words):
        return found[0]
    if re.sub("[^a-z]", "", tag) in words and len(found[0]) == len(tag) + 2:
        return found[0]
    if tag in LINES:
        return "\n"
    return ""


def holds_name(found: re.Match[str], words: frozenset[str]) -> bool:
    """Whether an attribute of a tag or the target of a link holds a name that people read, and the
    tag does not split a word."""
    around = (
        found.string[max(0, found.start() - 1) : found.start()],
        found.string[found.end() : found.end() + 1],
    )
    if all(map(str.isalnum, around)):
        return False
    letters = re.sub("[^a-z]", "", found[0].lower())
    return any(word in letters for word in words)


def close_letters(run: str, words: frozenset[str]) -> str:
    """Spaced letters with the name among them closed; everything else stays as it is."""
    places = [found.start() for found in SINGLE.finditer(run)]
    letters = "".join(run[place] for place in places).lower()
    for begin in range(len(letters)):
        for length in range(min(len(letters) - begin, 24), 2, -1):
            if letters[begin : begin + length] in words:
                end = begin + length
                while end < len(letters) and letters[end].isdigit():
                    end += 1
                return close_part(run, places, begin, end, length)
    return run


def close_part(run: str, places: list[int], begin: int, end: int, letters: int) -> str:
    """A run with its letters from `begin` to `end` closed; digits of a version keep their dots."""
    name = "".join(run[place] for place in places[begin : begin + letters])
    version = ""
    for at in range(begin + letters, end):
        between = run[places[at - 1] + 1 : places[at]]
        version += ("-" if not version else "." if "." in between else "") + run[places[at]]
    return run[: places[begin]] + name + version + run[places[end - 1] + 1 :]
