"""What is computed when a run ends: the task's own parts, which are stored with it, so that readers
who do not have the task see them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import orjson

from parley import __version__
from parley.errors import ParleyError
from parley.results.part import general_parts, qualified_name
from parley.results.remarks import describe_failure
from parley.results.result import RunResult
from parley.results.stored_parts import read_stored_figures
from parley.results.types import as_json, json_schema
from parley.store.types import StoredPart


def compute_parts_to_store(
    result: RunResult, shown: Iterable[str] | None = ()
) -> tuple[list[StoredPart], list[str]]:
    """The results of a task's own parts, to be stored in the run's file, and what failed. Parts
    that are `shown` next (None: all) are computed now, too, so that the record is read once."""
    try:
        own = [name for name, part in result.parts.items() if part not in general_parts()]
        if not own and shown == ():
            return [], []
        result.shows_stored = False  # what is on record is replaced
        with suppress(Exception):  # a general part fails again where it is shown
            result.compute(None if shown is None else [*own, *shown])
        found = make_stored_parts(result)
    except Exception as wrong:
        task = "" if result.task is None else result.task.name
        return [], [f"the task's own result parts (task `{task}`) could not be computed: {wrong}"]
    return found, [describe_failure(*each) for each in result.failures.items()]


def make_stored_parts(result: RunResult) -> list[StoredPart]:
    """The results of the task's own parts, to be stored in the run's file."""
    own = [part for part in result.parts.values() if part not in general_parts()]
    result.compute([part.name for part in own])
    kept = []
    for part in own:
        figures = result.figures(part.name)
        if part.name in result.failures:
            continue
        stored = StoredPart(
            qualified_name(part, result.head.run.task),
            __version__,
            orjson.dumps(json_schema(part.result)).decode(),
            orjson.dumps(part.publish(result.part(part.name))).decode(),
            orjson.dumps([as_json(figure) for figure in figures]).decode(),
        )
        try:
            read_stored_figures(stored)
        except ParleyError as wrong:  # numbers that JSON does not have
            result.failures[part.name] = str(wrong)
            continue
        kept.append(stored)
    return kept
