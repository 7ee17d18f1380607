"""Everything Parley raises on purpose. Each message says what was wanted, what was found, what to
do.

ParleyError
├── UsageError            what was typed or configured cannot be done
│   ├── UnknownName       ... a name does not exist
│   ├── KeyMissing        ... a model needs a key, and none is set
│   └── ProviderBroken    ... a provider of another package cannot be loaded
├── TaskError             a task's author made a mistake
├── Unreadable            a reply does not have the form that was asked for
│   └── OutOfBounds       ... it has the form, but breaks a limit
├── Forfeit               a seat gave no readable reply and the rule names no outcome
│   └── RecordEnded       ... or would have to go on where the record of a match that is judged again has ended
├── ParticipantError      a seat could not answer: endpoint, file, function, person
│   ├── Refused           ... and asking again will not help: wrong key, unknown model
│   └── Rejected          ... this time: the request is at fault, others may go through
│       └── Filtered      ... for what is said in it
├── SandboxError          code could not be run in isolation
├── StoreError            a run's file cannot be read or written
│   └── ReplayError       the record was made under another rule, prompt, configuration or seed
│       └── ShellDiffers  ... or what a match did in its shell gave something else in a fresh one
└── Halted                the run is stopping; nothing new is asked
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal, Self, TypeAlias

# What is wrong with a participant, where that decides what you can do about it. "address": the
# model's name or base_url; "unreachable": nobody answered a connection; "code": a bot, a function
# or a provider raised an exception of its own.
FaultKind: TypeAlias = Literal["", "key", "credit", "address", "unreachable", "code"]


class ParleyError(Exception):
    """Whatever goes wrong and can be explained."""


class UsageError(ParleyError):
    """What was typed or configured cannot be done."""


class UnknownName(UsageError):
    """Something is named that does not exist."""


class KeyMissing(UsageError):
    """A model needs a key, and none is set."""


class ProviderBroken(UsageError):
    """A provider of another package cannot be loaded; `reason` says why, without its name."""

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(f"provider {provider} cannot be loaded: {reason}")
        self.reason = reason


class TaskError(ParleyError):
    """A task's author made a mistake."""


class Unreadable(ParleyError):
    """A reply does not have the form that was asked for."""

    kind = "unreadable"


class OutOfBounds(Unreadable):
    """A reply has the form that was asked for, but breaks a limit."""

    kind = "out_of_bounds"


class Forfeit(ParleyError):
    """Seats gave no readable reply, and the rule names no outcome for that."""


class RecordEnded(Forfeit):
    """A match that is judged again would go on where its record has ended; a rule that can end
    there catches this."""


class ParticipantError(ParleyError):
    """A seat could not answer.

    `kind` and `hint` decide what advice a user gets, `answer` holds what the endpoint itself said:
    nobody searches the message for any of it.
    """

    def __init__(
        self, message: str = "", *, kind: FaultKind = "", hint: str = "", answer: str = ""
    ) -> None:
        super().__init__(message)
        self.kind, self.hint, self.answer = kind, hint, answer

    def with_message(self, message: str) -> Self:
        """The same fault in other words."""
        return type(self)(message, kind=self.kind, hint=self.hint, answer=self.answer)


class Refused(ParticipantError):
    """A seat could not answer, and asking again will not help."""


class Rejected(ParticipantError):
    """A seat could not answer this time: the request is at fault, others may go through."""


class Filtered(Rejected):
    """A seat could not answer this time: its endpoint refused the request for what is said in
    it."""


class SandboxError(ParleyError):
    """Code could not be run in isolation."""


class StoreError(ParleyError):
    """A run's file cannot be read or written."""


class ReplayError(StoreError):
    """The record was made under another rule, prompt, configuration or seed."""


class ShellDiffers(ReplayError):
    """What a match did in its shell, repeated in a fresh one, gave something else."""


class Halted(ParleyError):
    """The run is stopping; nothing new is asked.

    Where it stops at a bound, `limit` is the option that sets it and `needed` what the next request
    takes of it.
    """

    def __init__(self, message: str = "", *, limit: str = "", needed: float = 0.0) -> None:
        super().__init__(message)
        self.limit, self.needed = limit, needed


def unknown_name(what: str, found: str, known: Iterable[str], wanted: str = "") -> UnknownName:
    """The error for a name that does not exist, with the nearest one that does; `wanted` says what
    may be written where all names are too many to list."""
    names = sorted(known)
    near = get_close_matches(found, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    wanted = wanted or f"there are: {', '.join(names) or 'none'}"
    return UnknownName(f"unknown {what} {found!r}; {hint}{wanted}")


def describe_exception(wrong: BaseException, home: str | None = None) -> str:
    """An exception with the line that raised it: `KeyError: 'coins' (game.py, line 12)`."""
    try:  # the text of a SyntaxError ends with its line, too
        said = wrong.msg if isinstance(wrong, SyntaxError) and wrong.lineno else str(wrong)
    except Exception as silent:  # it may come from anybody
        said = f"(it cannot be printed: {type(silent).__name__})"
    where = locate_exception(wrong, home)
    name = type(wrong).__name__
    return (f"{name}: {said}" if said else name) + (f" ({where})" if where else "")


def locate_exception(wrong: BaseException, home: str | None = None) -> str:
    """The line that an author looks for: the innermost one in the file `home`, else the innermost
    one outside of Parley, of Python's library and of installed packages, else the innermost."""
    if isinstance(wrong, SyntaxError) and wrong.filename and wrong.lineno:
        return f"{file_name(wrong.filename)}, line {wrong.lineno}"
    lines, trace = list[tuple[str, int]](), wrong.__traceback__
    while trace is not None:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    inside = (
        [line for line in lines if home is not None and line[0] == home]
        or [line for line in lines if not is_foreign(line[0])]
        or lines
    )
    return f"{file_name(inside[-1][0])}, line {inside[-1][1]}" if inside else ""


def file_name(path: str) -> str:
    """The last part of a path: messages are stored with a run, folders need not be."""
    return path.replace("\\", "/").rpartition("/")[2]


def is_foreign(path: str) -> bool:
    """Whether a file belongs to Parley, to Python or to an installed package."""
    parts = path.replace("\\", "/").split("/")
    own = __file__.replace("\\", "/").rpartition("/")[0]
    return (
        path.replace("\\", "/").startswith(f"{own}/")
        or path.startswith("<frozen")
        or "site-packages" in parts
        or any(re.fullmatch(r"python3\.\d+", part) for part in parts)
    )
