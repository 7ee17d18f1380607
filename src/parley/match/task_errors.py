"""Turn unexpected exceptions of a task's methods into errors that name the task and the line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from parley.errors import ParleyError, TaskError, describe_exception, file_name, is_foreign
from parley.rules.task import Task


@contextmanager
def errors_of_task(task: Task | type[Task], method: str) -> Iterator[None]:
    """Turn any exception that is not Parley's own into a TaskError."""
    try:
        yield
    except ParleyError:
        raise
    except Exception as wrong:
        fault = describe_exception(wrong, file_of_task(task))
        raise TaskError(f"{task.name}: {method}() failed: {fault}") from wrong


def locate_method(task: Task, method: str) -> str:
    """Where a method of a user's task is defined: `; play is defined in game.py, line 12`; empty if
    it is not in a user's file."""
    code = getattr(inspect.unwrap(getattr(type(task), method)), "__code__", None)
    if code is None or is_foreign(code.co_filename):
        return ""
    return f"; {method} is defined in {file_name(code.co_filename)}, line {code.co_firstlineno}"


def file_of_task(task: Task | type[Task]) -> str | None:
    """The file that defines a task; None if there is none, as in a notebook."""
    kind = task if isinstance(task, type) else type(task)
    found: str | None = vars(sys.modules[kind.__module__]).get("__file__")
    return found
