"""Tasks at the command line of a machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

from parley.rules.check_needs import NEEDS, Need, find_needs

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
