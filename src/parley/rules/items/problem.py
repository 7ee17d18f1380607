"""Programming problems."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from parley.rules.python_tests import ParsedTests, find_definitions, parse_tests

DEFINED = re.compile(r"\b(?:def|class)\s+(\w+)")


@dataclass(frozen=True)
class Problem:
    """A programming problem with the hidden tests or cases that decide whether a program solves
    it."""

    id: str
    text: str
    tests: tuple[str, ...] = ()  # Python; each is one test
    signature: str = ""  # shown to the programmer besides the text, like `def f(a, b)`
    names: tuple[str, ...] = ()  # what the tests call and the program must define
    setup: str = ""  # run after the program, before the tests
    prelude: str = ""  # code that only the tests can see
    reference: str = ""  # a correct program
    challenge: tuple[str, ...] = ()  # further, harder tests
    cases: tuple[tuple[str, str], ...] = ()  # standard input and the expected standard output
    # whether programs are judged in their own process, where they can forge the result; with a
    # reference, this is found out before a run
    inside: bool = False

    def __post_init__(self) -> None:
        if self.tests and (fault := self.parsed_tests.find_undefined(self.entry_points)):
            raise ValueError(fault)

    @property
    def parsed_tests(self) -> ParsedTests:
        return parse_tests(tuple(self.tests), self.setup, self.prelude)

    @property
    def entry_points(self) -> tuple[str, ...]:
        """What the program must define: what the problem names, otherwise what its tests use of its
        reference or its signature."""
        if self.names:
            return tuple(self.names)
        defined = {*find_definitions(self.reference), *DEFINED.findall(self.signature)}
        return tuple(name for name in self.parsed_tests.names if name in defined)

    @property
    def is_unprotected(self) -> bool:
        """Whether a program can forge its result."""
        return self.inside or (bool(self.tests) and self.parsed_tests.runs_text)

    def program(self, code: str) -> dict[str, Any]:
        """A program for this problem, as a sandbox takes it."""
        if self.cases:
            return {"code": code, "cases": self.cases}
        defined = find_definitions(self.reference)
        classes = tuple(name for name in self.entry_points if defined.get(name))
        return {
            "code": code,
            "tests": self.tests,
            "setup": self.setup,
            "prelude": self.prelude,
            "names": self.entry_points,
            **({"classes": classes} if classes else {}),
            **({"inside": True} if self.inside else {}),
            **({} if self.reference else {"untried": True}),
        }
