"""Whatever goes wrong inside a participant is a fault of that participant, and of nothing else."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

from parley.errors import Halted, ParticipantError, Refused, Rejected
from parley.providers._replies import encodable
from parley.providers._secrets import redacted
from parley.tables import shorten

LONGEST = 1000  # characters of a fault


class Guarded:
    """Around a call of what others wrote: all that it raises becomes a ParticipantError; a real
    cancellation passes."""

    def __init__(self, what: str, halts: bool = False) -> None:
        self._what, self._halts = what, halts  # only what asks for the run may say that it halts

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._cancelled = cancellations(self._task)

    def __exit__(self, kind: Any, wrong: BaseException | None, trace: TracebackType | None) -> None:
        if wrong is None or (self._halts and isinstance(wrong, Halted)):
            return
        if isinstance(wrong, GeneratorExit) and running() is not self._task:
            return  # the call itself is being closed
        if cancellations(self._task) > self._cancelled:
            if isinstance(wrong, asyncio.CancelledError):
                return
            raise asyncio.CancelledError from wrong
        raise self._told(wrong) from wrong

    def _told(self, wrong: BaseException) -> ParticipantError:
        said = words_of(wrong)
        for kind in (Refused, Rejected, ParticipantError):
            if isinstance(wrong, kind):
                # fields of an exception that somebody else derived from ours may be missing
                return kind(said, kind=getattr(wrong, "kind", ""), hint=getattr(wrong, "hint", ""))
        return ParticipantError(f"{self._what} failed: {type(wrong).__name__}: {said}")


def running() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def cancellations(task: asyncio.Task[Any] | None) -> int:
    return task.cancelling() if task else 0


def words_of(wrong: BaseException) -> str:
    """What an exception says, as it may stand in a record."""
    try:
        said = str(wrong)
    except Exception as silent:  # it may come from anybody
        said = f"(it cannot be printed: {type(silent).__name__})"
    return shorten(redacted(encodable(said[: 50 * LONGEST])), LONGEST)
