"""Pairs of similar words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WordPair:
    """Two similar words, with synonyms of each that count as the same word."""

    id: str
    a: str
    b: str
    topic: str = ""
    synonyms_a: tuple[str, ...] = ()
    synonyms_b: tuple[str, ...] = ()

    def names(self, word: str) -> tuple[str, ...]:
        """One of the two words and its synonyms."""
        return (self.a, *self.synonyms_a) if word == self.a else (self.b, *self.synonyms_b)
