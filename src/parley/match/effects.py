"""What a script wants done besides asking: programs run, works consulted. What came of it is data,
and on record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from parley.errors import ReplayError, SandboxError, TaskError
from parley.match.record import Record
from parley.rules.referee import Consult, Run
from parley.rules.references import Lot, answered
from parley.rules.task import Task

Execute = Callable[[Mapping[str, Any]], Awaitable[Any]]


class Effects:
    """The effects of one match: each is performed once, however often the match is played again
    from its record."""

    def __init__(
        self,
        task: Task,
        record: Record,
        execute: Execute | None,
        works: Mapping[str, Any],
        lot: Lot,
    ) -> None:
        self._task, self._runs_code = task.name, task.runs_code
        self._record, self._execute, self._works, self._lot = record, execute, works, lot
        self._count = 0

    async def perform(self, effect: Run | Consult, round: int) -> Any:
        """A result from the record, else from the sandbox or the work; it is on record when this
        returns."""
        number, self._count = self._count, self._count + 1
        asked: Any
        if isinstance(effect, Run):
            asked, what = effect.program, "program"
        else:
            asked, what = (
                [effect.work, effect.question, *effect.given],
                f"question to the {effect.work}",
            )
        saw = blake2b(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
        kept = self._record.effect(round, number)
        if kept is not None:
            if kept[0] != saw:
                raise ReplayError(f"after round {round}: the record was made with another {what}")
            return kept[1]
        result = await self._ran(effect) if isinstance(effect, Run) else self._said(effect)
        await self._record.append_effect(round, number, saw, result)
        return result

    async def _ran(self, run: Run) -> Any:
        """What the sandbox says; a failure of the sandbox is no result."""
        if not self._runs_code:
            raise TaskError(
                f"{self._task} wants to run a program: write `runs_code = True` into the task"
            )
        if self._execute is None:
            raise SandboxError(
                f"{self._task} wants to run code, and there is no sandbox: model-written code "
                f"runs isolated or not at all"
            )
        return await self._execute(run.program)

    def _said(self, consult: Consult) -> Any:
        """What the work says."""
        return answered(
            self._works, consult.work, consult.question, consult.given, self._task, self._lot
        )
