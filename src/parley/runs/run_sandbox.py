"""The sandbox of a run whose task runs code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from parley.config.prepare import Prepared
from parley.match.effects import Execute
from parley.runs.progress import SANDBOX, Progress

if TYPE_CHECKING:
    from parley.sandbox.executor import Sandbox


@asynccontextmanager
async def open_sandbox(prepared: Prepared) -> AsyncIterator[Sandbox | None]:
    """Open the sandbox of a task that runs code and check its isolation before anything is written
    or paid."""
    # a rejudged run has its verdicts on record
    if not prepared.task.runs_code or prepared.source:
        yield None
        return
    from parley.sandbox.executor import Sandbox

    sandbox = Sandbox(prepared.config.sandbox)
    try:
        await sandbox.prove()
        if prepared.task.uses_shell:
            await sandbox.prove_shell()
        yield sandbox
    finally:
        await sandbox.close_shells()
        await asyncio.to_thread(sandbox.close)


def in_shell(execute: Execute, name: str) -> Execute:
    """Run programs; requests to a shell go to the shell of this name."""

    async def execute_there(program: Mapping[str, Any]) -> Any:
        shell = {"shell": name} if program.get("kind") == "shell" else {}
        return await execute({**program, **shell})

    return execute_there


def track_waiting(sandbox: Sandbox, progress: Progress) -> Execute:
    """Run programs, and keep in `progress` since when each one runs."""
    since, tickets = progress.waiting.setdefault(SANDBOX, {}), count()

    async def execute(program: Mapping[str, Any]) -> Any:
        ticket = next(tickets)
        since[ticket] = time.monotonic()
        try:
            return await sandbox.execute(program)
        finally:
            del since[ticket]

    return execute
