"""Results of a task's own parts, stored in the run's file when a run ends: readers that do not have
the task show them."""

from __future__ import annotations

import orjson

from parley import __version__
from parley.results.part import general_parts, parts_of_task, qualified_name
from parley.results.remarks import describe_failure
from parley.results.result import RunResult
from parley.results.types import as_json, json_schema
from parley.rules.task import Task
from parley.store import RunRef, StoredPart


def parts_to_store(run: RunRef, task: type[Task]) -> tuple[list[StoredPart], list[str]]:
    """The results of a task's own parts, to be stored in the run's file, and what failed."""
    try:
        if not parts_of_task(task):
            return [], []
        result = RunResult(run, task=task)
        found = make_stored_parts(result)
    except Exception as wrong:
        return [], [
            f"the task's own result parts (task `{task.name}`) could not be computed: {wrong}"
        ]
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
        kept.append(
            StoredPart(
                qualified_name(part, result.head.run.task),
                __version__,
                orjson.dumps(json_schema(part.result)).decode(),
                orjson.dumps(part.publish(result.part(part.name))).decode(),
                orjson.dumps([as_json(figure) for figure in figures]).decode(),
            )
        )
    return kept
