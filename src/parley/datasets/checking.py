"""What can be found wrong with items before anybody plays on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from parley.material import Problem
from parley.sandbox.executor import Sandbox


class Found(NamedTuple):
    """What came of a check."""

    checked: int  # items that could be
    faults: dict[str, str]  # id: what is wrong with it


Told = Callable[[int], None]  # is told how many items were looked at
Check = Callable[[Sequence[Any], Told], Coroutine[Any, Any, Found]]


async def references_run(problems: Sequence[Problem], told: Told) -> Found:
    """The problems whose reference fails its own tests; those without one cannot be checked."""
    sandbox, verdicts = Sandbox(), dict[str, str]()
    checked = [problem for problem in problems if problem.reference]

    async def look(problem: Problem) -> None:
        found = await sandbox.execute(problem.program(problem.reference))
        faults = (f"{'case' if problem.cases else 'test'} {n}: {fault}" for n, fault in enumerate(found["faults"], 1) if fault)
        verdicts[problem.id] = next(faults, "")
        told(len(verdicts))

    try:
        await asyncio.gather(*map(look, checked))
    finally:
        sandbox.close()
    return Found(len(checked), {problem.id: verdicts[problem.id] for problem in checked if verdicts[problem.id]})


CHECKS: dict[type, Check] = {Problem: references_run}
