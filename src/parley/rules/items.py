"""What tasks are played on: how a task describes its items, and the types of items that several
tasks and datasets share."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from parley.errors import TaskError
from parley.rules.languages import parse_language

ItemType: TypeAlias = type[Any]


@dataclass(frozen=True)
class Items:
    """What a task is played on: the type of its items, and how a run chooses among them."""

    type: ItemType  # a frozen dataclass with a field `id`
    _: KW_ONLY
    sample: int | None = None  # how many items a run draws by default; None: all
    bundled: Sequence[Any] = ()  # items that the task brings along, played by default
    # a field of items: a sample has each of its values in its share. None: the first are taken
    stratum: str | None = None
    # parameters of the task that name what is played, each with the field that holds such names
    picks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_class = is_dataclass(self.type) and isinstance(self.type, type)
        known = {each.name for each in fields(self.type)} if is_class else set()
        if "id" not in known or not self.type.__dataclass_params__.frozen:
            raise TaskError(
                f"items: wanted a frozen dataclass with a field `id`, found {self.type!r:.80}"
            )
        for name in (*self.picks.values(), *filter(None, [self.stratum])):
            if name not in known:
                raise TaskError(
                    f"items: {self.type.__name__} has no field {name!r}; "
                    f"there are: {', '.join(sorted(known))}"
                )


@lru_cache(256)
def find_classes(code: str) -> frozenset[str]:
    """The classes that a program defines at its top; none in what is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(node.name for node in body if isinstance(node, ast.ClassDef))


@dataclass(frozen=True)
class Problem:
    """A programming problem: what is asked for, and the hidden tests or cases that decide whether a
    program does it."""

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
        classes = tuple(name for name in self.names if name in find_classes(self.reference))
        return {
            "code": code,
            "tests": self.tests,
            "setup": self.setup,
            "prelude": self.prelude,
            **named,
            **({"classes": classes} if classes else {}),
        }


@dataclass(frozen=True)
class Paragraph:
    """A piece of text to be translated, with a translation that is taken for right.

    Languages are codes as `parley.rules.languages` has them, whatever they were called; nothing
    where they are not known.
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
                object.__setattr__(self, side, parse_language(said).code)
        if self.source_language and self.source_language == self.target_language:
            raise ValueError(
                f"a paragraph is translated into another language, not from "
                f"{self.source_language} into the same"
            )

    @property
    def pair(self) -> str:
        return f"{self.source_language}-{self.target_language}"


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Question:
    """A question with a right answer: one of several choices, known by its letter, or a text or
    number where there are none."""

    id: str
    question: str
    answer: str  # the letter of the right choice; without choices the answer itself
    choices: tuple[str, ...] = ()
    subject: str = ""
    language: str = "en"
    explanation: str = ""  # how the answer is found

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise ValueError("the question is empty")
        if not self.answer.strip():
            raise ValueError("the answer is empty")
        if len(self.choices) == 1 or len(self.choices) > len(LETTERS):
            raise ValueError(
                f"a question has 2 to {len(LETTERS)} choices, or none, not {len(self.choices)}"
            )
        if empty := [
            letter for letter, text in zip(LETTERS, self.choices, strict=False) if not text.strip()
        ]:
            raise ValueError(f"choice {empty[0]} is empty")
        if self.choices and self.answer not in self.letters:
            raise ValueError(
                f"the answer {self.answer[:40]!r} is none of the letters {self.letters[0]} to "
                f"{self.letters[-1]}"
            )

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of the choices."""
        return tuple(LETTERS[: len(self.choices)])

    @property
    def right(self) -> str:
        """The right answer in words."""
        return self.choices[self.letters.index(self.answer)] if self.choices else self.answer

    @property
    def lettered(self) -> str:
        """The choices, a line each, as they are shown."""
        return "\n".join(
            f"{letter}. {text}" for letter, text in zip(self.letters, self.choices, strict=True)
        )


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


# Commands that only make sense, or only work, where there are several users.
OF_USERS = re.compile(
    r"(?:^|[\s;&|(`])(?:useradd|adduser|usermod|userdel|groupadd|addgroup|groupmod|gpasswd|passwd|"
    r"chpasswd|chown|chgrp|su|sudo|runuser)\s"
)


@dataclass(frozen=True)
class ShellScript:
    """A script for the machine of a task at the command line."""

    code: str
    language: str = "bash"
    missing: str = ""  # the file that should hold it and is not there; then there is no code


@dataclass(frozen=True)
class OSEntry:
    """A task at the command line of a machine: what is to be done or found out, how the machine is
    prepared, and what decides whether it was done.

    Decisive is the right answer, a pattern that is found in the answer, or scripts that look at the
    machine. Among these scripts None stands for the example.
    """

    id: str
    description: str
    subject: str = ""
    init: tuple[ShellScript, ...] = ()  # run before the model is there
    start: ShellScript | None = None  # run in the model's own shell before its first turn
    answer: str | None = None
    strip: bool = True  # whether white space around an answer does not matter
    regex: str = ""
    checks: tuple[ShellScript | None, ...] = ()
    example: ShellScript | None = None  # a script that does it, or prints the answer
    home: str = "/root"
    folder: str = "/"  # where the shell and all scripts begin

    def __post_init__(self) -> None:
        if not self.description.strip():
            raise ValueError("the description is empty")
        if self.answer is None and not self.regex and not self.checks:
            raise ValueError("nothing decides: wanted a check, or an answer or regex to match")
        if None in self.checks and self.example is None:
            raise ValueError("a check stands for the example (null), and there is no example")
        for place in (self.home, self.folder):
            if not place.startswith("/") or ".." in place.split("/"):
                raise ValueError(f"home and folder are whole paths, not {place[:80]!r}")
        if self.regex:
            try:
                re.compile(self.regex)
            except re.error as wrong:
                raise ValueError(f"regex {self.regex[:80]!r} is no pattern: {wrong}") from None

    @property
    def scripts(self) -> tuple[ShellScript, ...]:
        """All its scripts."""
        every = (*self.init, self.start, *self.checks, self.example)
        return tuple(script for script in every if script is not None)

    @property
    def is_judged_by_state(self) -> bool:
        """Whether only scripts decide that look at the machine, and no right answer."""
        return bool(self.checks) and None not in self.checks

    @property
    def needs_users(self) -> bool:
        """Whether it makes, becomes or deals with other users, by the commands that it uses."""
        return any(OF_USERS.search(f"\n{script.code}\n") for script in self.scripts)
