"""What a method of a task raises by mistake becomes an error that names the task and the line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from parley.errors import ParleyError, TaskError, describe_exception, file_name, is_foreign
from parley.rules.task import Task


@contextmanager
def errors_of_task(task: Task | type[Task], method: str) -> Iterator[None]:
    """Around a call of a task's method: whatever it raises by mistake becomes a TaskError."""
    try:
        yield
    except ParleyError:
        raise
    except Exception as wrong:
        fault = describe_exception(wrong, file_of_task(task))
        raise TaskError(f"{task.name}: {method}() failed: {fault}") from wrong


def locate_method(task: Task, method: str) -> str:
    """Where a method of a user's task begins: `; play begins in game.py, line 12`; empty where it
    is not in a file of theirs."""
    code = getattr(inspect.unwrap(getattr(type(task), method)), "__code__", None)
    if code is None or is_foreign(code.co_filename):
        return ""
    return f"; {method} begins in {file_name(code.co_filename)}, line {code.co_firstlineno}"


def file_of_task(task: Task | type[Task]) -> str | None:
    """The file that defines a task; None where it has none, as in a notebook."""
    kind = task if isinstance(task, type) else type(task)
    found: str | None = vars(sys.modules[kind.__module__]).get("__file__")
    return found
