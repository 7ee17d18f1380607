"""Texts that may be too long for a page: what it shows, folds and leaves out.

Texts are masked before they come here: half of a secret would not be recognised.
"""

from __future__ import annotations

from dataclasses import dataclass

from parley.report.fenced_code import ends_in_code

SHOWN = 3_000  # characters of a text that are shown at once


@dataclass(frozen=True)
class BoundedText:
    """A text in two parts."""

    head: str
    rest: str = ""  # shown when it is unfolded
    left_out: int = 0  # characters that the page does not have
    cuts_code: bool = False  # the rest begins inside a fenced block


@dataclass
class TextRoom:
    """How many characters of folded texts a page still has room for."""

    left: int
    shown: int = SHOWN

    def bound(self, text: str) -> BoundedText:
        """A text in two parts; the second is left out if the page has no room for it."""
        head, rest = text[: self.shown], text[self.shown :]
        if len(rest) > self.left:
            return BoundedText(head, left_out=len(rest))
        self.left -= len(rest)
        return BoundedText(head, rest, cuts_code=bool(rest) and ends_in_code(head))
