"""Every exception that Parley raises on purpose. Each message says what was expected, what was
found and what to do.

ParleyError
├── UsageError            a command, an option or a file is wrong
│   ├── UnknownName       a name does not exist
│   ├── KeyMissing        a model needs an API key, and none is set
│   └── ProviderBroken    a provider from another package cannot be loaded
├── TaskError             a task has a mistake in its code
├── Unreadable            a reply does not have the required format
│   └── OutOfBounds       a reply has the required format, but breaks a limit
├── Forfeit               a seat gave no readable reply, and the rule has no default
│   └── RecordEnded       a match that is judged again needs a reply that its record does not have
├── ParticipantError      a seat could not answer: endpoint, file, function or person
│   ├── Refused           a retry will not help: wrong key, unknown model
│   └── Rejected          this request was rejected; others may succeed
│       └── Filtered      the endpoint's content filter rejected this request
├── SandboxError          code could not run in isolation
├── StoreError            a run, or its store, cannot be read or written
│   ├── StoreAway         the store does not answer now, and may be back later
│   ├── NotShared         the run is not open for workers, or not any more
│   ├── Replaced          this worker was declared dead, so others play its matches
│   └── ReplayError       the record was made with another rule, prompt, configuration or seed
│       └── ShellDiffers  the commands of a match had another result in a fresh shell
└── Halted                the run is stopping and makes no new calls
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal, Self, TypeAlias

# What is wrong with a participant, if that decides what the user can do about it. "address": the
# model's name or base_url; "unreachable": the connection failed; "code": a bot, a function or a
# provider raised its own exception.
FaultKind: TypeAlias = Literal["", "key", "credit", "address", "unreachable", "code"]


MOST_QUOTED, LONGEST_MESSAGE = 200, 2_000  # characters
# a quotation with its marks, or a word; apostrophes do not begin or end a quotation
LONG_PART = re.compile(r"""(?<!\w)(["'`]).{199,}?\1(?!\w)|[^\s"'`]{201,}""", re.DOTALL)


class ParleyError(Exception):
    """The base class of all errors that Parley raises on purpose."""


class UsageError(ParleyError):
    """A command, an option or a file is wrong. The message quotes little of a file, whatever is in
    it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shorten_quotations(message))


class UnknownName(UsageError):
    """A name does not exist."""


class KeyMissing(UsageError):
    """A model needs an API key, and none is set."""


class ProviderBroken(UsageError):
    """A provider from another package cannot be loaded; `reason` says why, without its name."""

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(f"provider {provider} cannot be loaded: {reason}")
        self.reason = reason


class TaskError(ParleyError):
    """A task has a mistake in its code."""


class Unreadable(ParleyError):
    """A reply does not have the required format."""

    kind = "unreadable"


class OutOfBounds(Unreadable):
    """A reply has the required format, but breaks a limit."""

    kind = "out_of_bounds"


class Forfeit(ParleyError):
    """Seats gave no readable reply, and the rule has no default for that."""


class RecordEnded(Forfeit):
    """A match that is judged again needs a reply after the end of its record; a rule that can end
    there catches this."""


class ParticipantError(ParleyError):
    """A seat could not answer.

    `kind` and `hint` decide which advice the user gets, `answer` is the endpoint's own message, and
    `status` its HTTP status (0 if it had none). The code never searches the message for any of
    these.
    """

    def __init__(
        self,
        message: str = "",
        *,
        kind: FaultKind = "",
        hint: str = "",
        answer: str = "",
        status: int = 0,
    ) -> None:
        super().__init__(message)
        self.kind, self.hint, self.answer, self.status = kind, hint, answer, status

    def with_message(self, message: str) -> Self:
        """The same error with another message."""
        return type(self)(
            message, kind=self.kind, hint=self.hint, answer=self.answer, status=self.status
        )


class Refused(ParticipantError):
    """A seat could not answer, and a retry will not help."""


class Rejected(ParticipantError):
    """A seat could not answer this request; others may succeed."""


class Filtered(Rejected):
    """The endpoint's content filter rejected this request."""


class SandboxError(ParleyError):
    """Code could not run in isolation."""


class StoreError(ParleyError):
    """A run, or its store, cannot be read or written."""


class StoreAway(StoreError):
    """The store does not answer now: a server that restarts, a full disk, a broken network."""


class NotShared(StoreError):
    """The run is not open for workers, or not any more."""


class Replaced(StoreError):
    """This worker was declared dead, so others play its matches and it records nothing more."""

    def __init__(self) -> None:
        super().__init__(
            "this worker gave no sign of life for too long, so other workers play its matches now "
            "and it records nothing more for them"
        )


class ReplayError(StoreError):
    """The record was made with another rule, prompt, configuration or seed."""


class ShellDiffers(ReplayError):
    """The commands of a match, repeated in a fresh shell, had another result."""


class Halted(ParleyError):
    """The run is stopping and makes no new calls.

    If it stops at a limit, `limit` is the option that sets it and `needed` is how much of it the
    next request takes.
    """

    def __init__(self, message: str = "", *, limit: str = "", needed: float = 0.0) -> None:
        super().__init__(message)
        self.limit, self.needed = limit, needed


def shorten_quotations(message: str) -> str:
    """A message with at most 200 characters of each quotation and each word. If it is still long,
    it keeps its beginning and its end, which says what to do."""
    if len(message) <= MOST_QUOTED:
        return message
    found = LONG_PART.sub(
        lambda part: f"{part[0][: MOST_QUOTED - 2]}…{part[1] or ''}",
        leave_out_middle(message, 4 * LONGEST_MESSAGE),
    )
    return leave_out_middle(found, LONGEST_MESSAGE)


def leave_out_middle(text: str, most: int) -> str:
    """The beginning and the end of a long text."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-most // 3 :]}"


def unknown_name(what: str, found: str, known: Iterable[str], wanted: str = "") -> UnknownName:
    """The error for a name that does not exist, with the nearest one that does; `wanted` replaces
    the list of names if that would be too long."""
    names, found = sorted(known), found[:MOST_QUOTED]
    near = get_close_matches(found, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    wanted = wanted or f"available: {', '.join(names) or 'none'}"
    return UnknownName(f"unknown {what} {found!r}; {hint}{wanted}")


def describe_type(value: object) -> str:
    """The type of a value in a file, in the words of JSON: `a list`, `text`."""
    words: dict[type, str] = {
        type(None): "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        tuple: "a list",
        dict: "an object",
    }
    return words.get(type(value), type(value).__name__)


def describe_exception(wrong: BaseException, home: str | None = None) -> str:
    """An exception with the line that raised it: `KeyError: 'coins' (game.py, line 12)`."""
    try:  # str() of a SyntaxError would repeat the line
        said = wrong.msg if isinstance(wrong, SyntaxError) and wrong.lineno else str(wrong)
    except Exception as silent:  # an exception of somebody else's code may fail to print
        said = f"(the message cannot be printed: {type(silent).__name__})"
    where = locate_exception(wrong, home)
    name = type(wrong).__name__
    return (f"{name}: {said}" if said else name) + (f" ({where})" if where else "")


def locate_exception(wrong: BaseException, home: str | None = None) -> str:
    """The line that the author of the code needs: the innermost one in the file `home`, or else
    outside Parley, the standard library and installed packages, or else of all."""
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
    """The last part of a path; messages are stored with a run and should not contain folders."""
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
