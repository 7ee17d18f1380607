"""Items: how a task declares what it is played on, and the item types that several tasks and
datasets share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from typing import Any, TypeAlias

from parley.errors import TaskError
from parley.rules.check_needs import NEEDS, Need, find_needs
from parley.rules.languages import parse_language
from parley.rules.python_tests import ParsedTests, find_definitions, parse_tests

ItemType: TypeAlias = type[Any]


@dataclass(frozen=True)
class Items:
    """The items a task is played on: their type, and how a run chooses among them."""

    type: ItemType  # a frozen dataclass with a field `id`
    _: KW_ONLY
    sample: int | None = None  # how many items a run draws by default; None: all
    bundled: Sequence[Any] = ()  # items that the task brings along, played by default
    # a field of items: a sample keeps the proportions of its values. None: take the first items
    stratum: str | None = None
    # parameters of the task that name what is played, each with the field that holds such names
    picks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_class = is_dataclass(self.type) and isinstance(self.type, type)
        known = {each.name for each in fields(self.type)} if is_class else set()
        if "id" not in known or not self.type.__dataclass_params__.frozen:
            raise TaskError(
                f"items: expected a frozen dataclass with a field `id`, found {self.type!r:.80}"
            )
        for name in (*self.picks.values(), *filter(None, [self.stratum])):
            if name not in known:
                raise TaskError(
                    f"items: {self.type.__name__} has no field {name!r}; "
                    f"its fields are: {', '.join(sorted(known))}"
                )


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


@dataclass(frozen=True)
class Paragraph:
    """A text to translate, with a reference translation.

    Languages are stored as the codes of `parley.rules.languages`; empty if unknown.
    """

    id: str
    source: str
    reference: str
    source_language: str = ""
    target_language: str = ""
    document: str = ""  # the document it is part of

    def __post_init__(self) -> None:
        for side in ("source_language", "target_language"):
            if said := getattr(self, side):
                object.__setattr__(self, side, parse_language(said).code)
        if self.source_language and self.source_language == self.target_language:
            raise ValueError(
                "the source and the target language must differ, but both are "
                f"{self.source_language}"
            )

    @property
    def pair(self) -> str:
        return f"{self.source_language}-{self.target_language}"


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Question:
    """A question with its right answer: the letter of a choice, or a text or number if there are
    no choices."""

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
                f"a question must have either no choices or 2 to {len(LETTERS)} choices, not "
                f"{len(self.choices)}"
            )
        if empty := [
            letter for letter, text in zip(LETTERS, self.choices, strict=False) if not text.strip()
        ]:
            raise ValueError(f"choice {empty[0]} is empty")
        if self.choices and self.answer not in self.letters:
            raise ValueError(
                f"the answer must be a letter from {self.letters[0]} to {self.letters[-1]}, "
                f"not {self.answer[:40]!r}"
            )

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(LETTERS[: len(self.choices)])

    @property
    def right(self) -> str:
        """The right answer in words."""
        return self.choices[self.letters.index(self.answer)] if self.choices else self.answer

    @property
    def lettered(self) -> str:
        """The choices as they are shown, one per line."""
        return "\n".join(
            f"{letter}. {text}" for letter, text in zip(self.letters, self.choices, strict=True)
        )


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


LONGEST_PATTERN = 1_000  # characters of a pattern for an answer
# Commands that only make sense, or only work, on a machine with several users.
OF_USERS = re.compile(
    r"(?:^|[\s;&|(`])(?:useradd|adduser|usermod|userdel|groupadd|addgroup|groupmod|gpasswd|passwd|"
    r"chpasswd|chown|chgrp|su|sudo|runuser)\s"
)


@dataclass(frozen=True)
class ShellScript:
    """A script for the machine of a task at the command line."""

    code: str
    language: str = "bash"
    missing: str = ""  # the missing file that should hold the code; then `code` is empty


@dataclass(frozen=True)
class OSEntry:
    """A command-line task: its description, how the machine is prepared, and how the outcome is
    checked.

    The outcome is checked by the right answer, by a pattern that must occur in the answer, or by
    scripts that inspect the machine. In `checks`, None stands for the example.

    `needs` says what the checks need that a model can forge: running `processes`, `programs` that
    it wrote, or `commands` that programs take from files. What the scripts show is added to it.
    """

    id: str
    description: str
    subject: str = ""
    init: tuple[ShellScript, ...] = ()  # run before the model gets access
    start: ShellScript | None = None  # run in the model's own shell before its first turn
    answer: str | None = None
    strip: bool = True  # ignore white space around an answer
    regex: str = ""
    checks: tuple[ShellScript | None, ...] = ()
    example: ShellScript | None = None  # a script that solves the task or prints the answer
    home: str = "/root"
    folder: str = "/"  # working directory in which the shell and all scripts start
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.description.strip():
            raise ValueError("the description is empty")
        if unknown := set(self.needs) - set(NEEDS):
            raise ValueError(
                f"needs must be a list of {', '.join(NEEDS)}, but it has {min(map(str, unknown))!r}"
            )
        all_needs = {*self.needs, *self.found_needs}
        object.__setattr__(self, "needs", tuple(need for need in NEEDS if need in all_needs))
        if self.answer is None and not self.regex and not self.checks:
            raise ValueError(
                "this item cannot be scored: add `checks`, or an `answer` or `regex` to match"
            )
        if None in self.checks and self.example is None:
            raise ValueError(
                "a check is null, which means the example solution, but this item has no example"
            )
        for place in (self.home, self.folder):
            if not place.startswith("/") or ".." in place.split("/"):
                raise ValueError(
                    f"home and folder must be absolute paths without '..', not {place[:80]!r}"
                )
        if len(self.regex) > LONGEST_PATTERN:  # it is compiled here, without limits of time
            raise ValueError(
                f"regex has {len(self.regex):,} characters, and at most {LONGEST_PATTERN:,} are "
                "allowed"
            )
        if self.regex:
            try:
                re.compile(self.regex)
            except (re.error, OverflowError, RecursionError) as wrong:
                raise ValueError(
                    f"regex {self.regex[:80]!r} is not a valid pattern: {wrong}"
                ) from None

    @property
    def scripts(self) -> tuple[ShellScript, ...]:
        every = (*self.init, self.start, *self.checks, self.example)
        return tuple(script for script in every if script is not None)

    @property
    def found_needs(self) -> dict[Need, str]:
        """What the scripts of the checks show that they need, with the reason."""
        if self.answer is not None or self.regex:
            return {}
        own = [(script.code, script.language) for script in self.checks if script is not None]
        if None not in self.checks or self.example is None:
            return find_needs(own)
        return find_needs(own, (self.example.code, self.example.language))

    @property
    def is_unprotected(self) -> bool:
        """Whether a model can forge the result of the checks."""
        return bool(self.needs)

    @property
    def is_checked_live(self) -> bool:
        """Whether the checks run among the processes and programs of the model."""
        return not {"processes", "programs"}.isdisjoint(self.needs)

    @property
    def is_judged_by_state(self) -> bool:
        """Whether the outcome is checked only by scripts that inspect the machine."""
        return bool(self.checks) and None not in self.checks

    @property
    def needs_users(self) -> bool:
        """Whether its scripts use commands that create, become or manage other users."""
        return any(OF_USERS.search(f"\n{script.code}\n") for script in self.scripts)
