"""Trials: a program with its tests or cases, parsed once for each problem."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from parley.errors import TaskError
from parley.rules.python_tests import ParsedTests, parse_tests

KEYS = {"kind", "code", "tests", "names", "classes", "setup", "prelude", "cases", "inside",
        "untried"}  # fmt: skip
Guarantee = Literal["values", "inside", "none"]


@dataclass(frozen=True)
class Trial:
    """A program with tests that call what it defines, or with cases that compare its output for an
    input."""

    code: str
    tests: tuple[str, ...] = ()  # Python; each is one test
    names: tuple[str, ...] = ()  # what tests call and the program must define
    classes: tuple[str, ...] = ()  # the names that are classes
    setup: str = ""  # run before the tests, after the program
    prelude: str = ""  # code of the tests that no program can replace
    # standard input and the expected standard output
    cases: tuple[tuple[str, str], ...] = ()
    inside: bool = False  # the tests run in the program's process, where it can forge the result
    # whether nobody knows that a right program passes these tests by values: there is no reference
    untried: bool = False

    @property
    def count(self) -> int:
        return len(self.tests or self.cases)

    @property
    def problem(self) -> bytes:
        """The problem as it is sent to a judge."""
        return problem_of(self.tests, self.names, self.classes, self.setup, self.prelude)

    @property
    def guarantee(self) -> Guarantee:
        """The kind of every verdict on this problem; no program can choose it."""
        runs_text = bool(self.tests) and parse(self.tests, self.setup, self.prelude).runs_text
        return "inside" if self.inside or runs_text else "values"


def trial_of(program: Mapping[str, Any]) -> Trial:
    """Make a trial of a task's request to run a program."""
    if unknown := set(program) - KEYS:
        raise TaskError(
            f"unknown key in a request to run a program: {', '.join(sorted(unknown))}; valid "
            f"keys: {', '.join(sorted(KEYS))}"
        )
    code, tests, cases = (
        program.get("code"),
        tuple(program.get("tests", ())),
        program.get("cases", ()),
    )
    if not isinstance(code, str) or bool(tests) == bool(cases):
        raise TaskError(
            "a request to run a program needs text in `code`, and either `tests` or `cases` "
            "(not both, and not empty)"
        )
    setup, prelude = str(program.get("setup", "")), str(program.get("prelude", ""))
    found = parse(tests, setup, prelude)
    names, classes = read_names(program, "names"), read_names(program, "classes")
    if fault := found.find_undefined(names):
        raise TaskError(fault)
    imports = "".join(f"import {name}\n" for name in found.modules if name not in names)
    pairs = tuple((str(stdin), str(wanted)) for stdin, wanted in cases)
    inside, untried = bool(program.get("inside")), bool(program.get("untried"))
    return Trial(code, tests, names, classes, setup, imports + prelude, pairs, inside, untried)


def parse(tests: tuple[str, ...], setup: str, prelude: str) -> ParsedTests:
    try:
        return parse_tests(tests, setup, prelude)
    except (ValueError, TypeError) as wrong:
        raise TaskError(str(wrong)) from None


def read_names(program: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of names in what a task asks for."""
    given = program.get(key, ())
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise TaskError(
            f"`{key}` of a program must be a list of names that its tests call, not {given!r}"
        )
    return tuple(given)


@lru_cache(256)
def problem_of(
    tests: tuple[str, ...],
    names: tuple[str, ...],
    classes: tuple[str, ...],
    setup: str,
    prelude: str,
) -> bytes:
    told = {"tests": tests, "names": names, "classes": classes, "setup": setup, "prelude": prelude}
    return json.dumps(told).encode()
