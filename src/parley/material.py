"""What tasks are played on: the types of items that several tasks and datasets share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """A programming problem: what is asked for, and the hidden tests or cases that decide whether a program does it."""

    id: str
    text: str
    tests: tuple[str, ...] = ()  # Python; each is one test
    signature: str = ""  # what the programmer is told besides the text, like `def f(a, b)`
    names: tuple[str, ...] = ()  # what the tests call, and the program defines
    setup: str = ""  # run after the program, before the tests
    prelude: str = ""  # what only the tests know
    reference: str = ""  # a program that is right
    challenge: tuple[str, ...] = ()  # further tests, harder ones
    cases: tuple[tuple[str, str], ...] = ()  # standard input and the standard output that is wanted

    def program(self, code: str) -> dict[str, Any]:
        """A program for this problem, as a sandbox takes it."""
        if self.cases:
            return {"code": code, "cases": self.cases}
        named = {"names": self.names} if self.names else {}  # else they are found in the tests
        return {"code": code, "tests": self.tests, "setup": self.setup, "prelude": self.prelude, **named}


LANGUAGES = {
    "ar": "Arabic", "cs": "Czech", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "hi": "Hindi",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


@dataclass(frozen=True)
class Paragraph:
    """A piece of text to be translated, with a translation that is taken for right; languages are codes like `en`."""

    id: str
    source: str
    reference: str
    source_language: str
    target_language: str
    document: str = ""  # what it is a part of

    @property
    def pair(self) -> str:
        return f"{self.source_language}-{self.target_language}"

    @property
    def languages(self) -> tuple[str, str]:
        """Both languages by their names; by their codes where they have none here."""
        source, target = (LANGUAGES.get(code, code) for code in (self.source_language, self.target_language))
        return source, target


@dataclass(frozen=True)
class WordPair:
    """Two words that are alike and yet not the same, with other names of each that count as it."""

    id: str
    a: str
    b: str
    topic: str = ""
    synonyms_a: tuple[str, ...] = ()
    synonyms_b: tuple[str, ...] = ()

    def names(self, word: str) -> tuple[str, ...]:
        """One of the two words, and all that counts as it."""
        return (self.a, *self.synonyms_a) if word == self.a else (self.b, *self.synonyms_b)
