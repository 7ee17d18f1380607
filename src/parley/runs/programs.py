"""Where a run's programs go: a sandbox that is proven before the run begins, and waited for like everybody else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from parley.runs.seats import Tally
from parley.config.prepare import Prepared

if TYPE_CHECKING:
    from parley.sandbox.executor import Sandbox

PLACE = "the sandbox"  # as whoever waits for it is told


@asynccontextmanager
async def proven(prepared: Prepared) -> AsyncIterator[Sandbox | None]:
    """The sandbox of a task that runs code, found to hold before anything is written or paid; closed whatever happens."""
    if not prepared.task.runs_code or prepared.source:  # what is judged again has its verdicts on record
        yield None
        return
    from parley.sandbox.executor import Sandbox

    sandbox = Sandbox(prepared.config.sandbox)
    try:
        await sandbox.prove()
        yield sandbox
    finally:
        await asyncio.to_thread(sandbox.close)


def awaited(sandbox: Sandbox, tally: Tally) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    """Run programs, and let it be known since when each is waited for."""
    since, tickets = tally.waiting.setdefault(PLACE, {}), count()

    async def execute(program: Mapping[str, Any]) -> Any:
        ticket = next(tickets)
        since[ticket] = time.monotonic()
        try:
            return await sandbox.execute(program)
        finally:
            del since[ticket]

    return execute
