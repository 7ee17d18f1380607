"""What a script can do besides asking: run programs and look things up. Results are data and are
recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from parley.errors import ReplayError, SandboxError, ShellDiffers, TaskError
from parley.match.record import Record
from parley.rules.referee import LookUp, RunProgram
from parley.rules.references import DrawOrder, look_up
from parley.rules.task import Task

Execute = Callable[[Mapping[str, Any]], Awaitable[Any]]
SAME = ("output", "status", "timed_out")  # must be the same when a command is repeated


class Effects:
    """Performs the effects of one match, each of them once; a replay takes results from the
    record."""

    def __init__(
        self,
        task: Task,
        record: Record,
        execute: Execute | None,
        works: Mapping[str, Any],
        draw_order: DrawOrder,
    ) -> None:
        self._task, self._runs_code = task.name, task.runs_code
        self._record, self._execute, self._works, self._draw_order = (
            record,
            execute,
            works,
            draw_order,
        )
        self._count = 0
        # shell commands from before the interruption, with their recorded results
        self._behind: list[tuple[Mapping[str, Any], Any]] = []

    async def perform(self, effect: RunProgram | LookUp, round: int) -> Any:
        """The result from the record, otherwise from the sandbox or the work of reference. It is
        recorded when this returns."""
        number, self._count = self._count, self._count + 1
        request: Any
        if isinstance(effect, RunProgram):
            request, what = effect.program, "program"
        else:
            request, what = (
                [effect.work, effect.question, *effect.given],
                f"question to {effect.work}",
            )
        encoded = orjson.dumps(request, option=orjson.OPT_SORT_KEYS)
        request_digest = blake2b(encoded, digest_size=16).digest()
        kept = self._record.effect(round, number)
        if kept is not None:
            if kept[0] != request_digest:
                raise ReplayError(
                    f"after round {round}: the task asks for a different {what} than in the "
                    "record, because the task's rule, a prompt or the random seed has changed"
                )
            if isinstance(effect, RunProgram) and request.get("kind") == "shell":
                self._behind.append((request, kept[1]))
            return kept[1]
        await self.catch_up()
        result = (
            await self._run_program(effect)
            if isinstance(effect, RunProgram)
            else self._look_up(effect)
        )
        await self._record.append_effect(round, number, request_digest, result)
        return result

    @property
    def is_behind(self) -> bool:
        """Whether `catch_up` has something to do."""
        return bool(self._behind)

    async def catch_up(self) -> None:
        """Repeat the recorded commands in the fresh shell of a resumed match. This must come before
        anything new is asked or run."""
        if not self._behind or self._execute is None:
            return
        behind, self._behind = self._behind, []
        for number, (request, result) in enumerate(behind, 1):
            found = await self._execute(request)
            if any(found.get(key) != result.get(key) for key in SAME):
                raise ShellDiffers(
                    f"shell command {number} of {len(behind)} gave a different result when "
                    "Parley repeated it in a new shell"
                )

    async def _run_program(self, run: RunProgram) -> Any:
        """Run a program in the sandbox; a failure of the sandbox is an error, not a result."""
        if not self._runs_code:
            raise TaskError(
                f"{self._task} runs a program, but does not declare that it runs code: write "
                "`runs_code = True` in the task"
            )
        if self._execute is None:
            raise SandboxError(
                f"{self._task} runs model-written code, but no sandbox was given: pass "
                "`execute=Sandbox().execute`"
            )
        return await self._execute(run.program)

    def _look_up(self, consult: LookUp) -> Any:
        return look_up(
            self._works, consult.work, consult.question, consult.given, self._task, self._draw_order
        )
