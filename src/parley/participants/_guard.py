"""Turns every exception from code that others wrote into an error of that participant."""

from __future__ import annotations

import asyncio
import inspect
from types import TracebackType
from typing import Any

from parley.errors import FaultKind, Halted, ParticipantError, Refused, Rejected, locate_exception
from parley.providers._replies import replace_unencodable
from parley.providers._secrets import redact
from parley.tables import shorten

LONGEST = 1000  # characters of a fault


class ErrorsAsParticipant:
    """A context around code that others wrote: its exceptions become a ParticipantError. A real
    cancellation passes."""

    def __init__(
        self, what: str, halts: bool = False, home: str | None = None, kind: FaultKind = ""
    ) -> None:
        self._what, self._halts = what, halts  # `halts`: the code may raise Halted
        self._home, self._kind = home, kind  # `home`: the file whose line an error names

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._cancelled = count_cancellations(self._task)

    def __exit__(self, kind: Any, wrong: BaseException | None, trace: TracebackType | None) -> None:
        if wrong is None or (self._halts and isinstance(wrong, Halted)):
            return
        if isinstance(wrong, GeneratorExit) and find_current_task() is not self._task:
            return  # the call itself is being closed
        if count_cancellations(self._task) > self._cancelled:
            if isinstance(wrong, asyncio.CancelledError):
                return
            raise asyncio.CancelledError from wrong
        raise self._convert(wrong) from wrong

    def _convert(self, wrong: BaseException) -> ParticipantError:
        said = message_of_exception(wrong)
        for kind in (Refused, Rejected, ParticipantError):
            if isinstance(wrong, kind):
                # fields of an exception that somebody else derived from ours may be missing
                return kind(said, kind=getattr(wrong, "kind", ""), hint=getattr(wrong, "hint", ""))
        line = locate_exception(wrong, self._home)
        fault = f"{type(wrong).__name__}: {said}" + (f" ({line})" if line else "")
        return ParticipantError(f"{self._what} failed: {fault}", kind=self._kind)


def file_of_function(function: Any) -> str | None:
    """The file that defines a function, or the one it wraps; None if there is none."""
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    return None if code is None else str(code.co_filename)


def find_current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def count_cancellations(task: asyncio.Task[Any] | None) -> int:
    return task.cancelling() if task else 0


def message_of_exception(wrong: BaseException) -> str:
    """The message of an exception, fit for a record: short, encodable, keys masked."""
    try:
        said = str(wrong)
    except Exception as silent:  # it may come from anybody
        said = f"(the message cannot be printed: {type(silent).__name__})"
    return shorten(redact(replace_unencodable(said[: 50 * LONGEST])), LONGEST)
