"""What is computed when a run ends: the task's own parts, which are stored with it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from parley.results.part import general_parts
from parley.results.result import RunResult, describe_failure
from parley.store import StoredPart


def parts_to_store(
    result: RunResult, shown: Iterable[str] | None = ()
) -> tuple[list[StoredPart], list[str]]:
    """The results of a task's own parts, to be stored in the run's file, and what failed. Parts
    that are `shown` next (None: all) are computed now, too, so that the record is read once."""
    try:
        own = [name for name, part in result.parts.items() if part not in general_parts()]
        if not own and shown == ():
            return [], []
        result.stored = {}  # what is on record is replaced
        with suppress(Exception):  # a general part fails again where it is shown
            result.compute(None if shown is None else [*own, *shown])
        found = result.to_stored()
    except Exception as wrong:
        task = "" if result.task is None else result.task.name
        return [], [f"the task's own result parts (task `{task}`) could not be computed: {wrong}"]
    return found, [describe_failure(*each) for each in result.failures.items()]
