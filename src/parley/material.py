"""What tasks are played on: the types of items that several tasks and datasets share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from parley.scoring.languages import language


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


@dataclass(frozen=True)
class Paragraph:
    """A piece of text to be translated, with a translation that is taken for right.

    Languages are codes as `parley.scoring.languages` has them, whatever they were called; nothing where they are not known.
    """

    id: str
    source: str
    reference: str
    source_language: str = ""
    target_language: str = ""
    document: str = ""  # what it is a part of

    def __post_init__(self) -> None:
        for side in ("source_language", "target_language"):
            if said := getattr(self, side):
                object.__setattr__(self, side, language(said).code)
        if self.source_language and self.source_language == self.target_language:
            raise ValueError(f"a paragraph is translated into another language, not from {self.source_language} into the same")

    @property
    def pair(self) -> str:
        return f"{self.source_language}-{self.target_language}"
