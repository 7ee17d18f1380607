"""What tasks are played on: the types of items that several of them share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A programming problem, its hidden tests, and how they call the program."""

    id: str
    text: str
    tests: tuple[str, ...] = ()
    signature: str = ""
    names: tuple[str, ...] = ()
    setup: str = ""
    prelude: str = ""
    reference: str = ""
    challenge: tuple[str, ...] = ()
    cases: tuple[tuple[str, str], ...] = ()
