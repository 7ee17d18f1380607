"""What is computed when a run ends: the parts that are stored with it, and those shown next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from parley.results.part import general_parts
from parley.results.result import RunResult, describe_failure
from parley.store import StoredPart


class EndSummary(NamedTuple):
    """A result, the parts of the task to store with its run, and which of them failed."""

    result: RunResult
    parts: Sequence[StoredPart]
    notices: Sequence[str]


def summarise_run(result: RunResult, shown: Iterable[str] | None = ()) -> EndSummary:
    """Compute what is stored with a run, and the parts that are `shown` next (None: all of them),
    so that the record is read once."""
    try:
        own = [name for name, part in result.parts.items() if part not in general_parts()]
        if not own and shown == ():
            return EndSummary(result, [], [])
        result.stored = {}  # what is on record is replaced
        with suppress(Exception):  # a general part fails again where it is shown
            result.compute(None if shown is None else [*own, *shown])
        parts = result.to_stored()
    except Exception as wrong:
        task = "" if result.task is None else result.task.name
        failed = f"the task's own result parts (task `{task}`) could not be computed: {wrong}"
        return EndSummary(result, [], [failed])
    return EndSummary(result, parts, [describe_failure(*each) for each in result.failures.items()])
