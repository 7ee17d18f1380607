"""Parley evaluates language models by letting them interact: they play, cooperate, are interviewed, learn."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from parley.errors import Forfeit, ParleyError, RecordEnded, TaskError, UsageError
from parley.expect import Amount, Choice, Code, Fields, Reader, Said, Text, Word
from parley.material import Paragraph, Problem, Question, WordPair
from parley.pool import Example, Seat, View
from parley.referee import Referee
from parley.sight import Sight
from parley.task import Metric, Prompt, Role, Scores, Task, Vetting
from parley.works import Demonstrations, WordList

if _TYPE_CHECKING:
    from parley.door import rejudge, resume, run, run_async
    from parley.result import Result

__version__ = "0.1.0"
__all__ = [
    "Amount",
    "Choice",
    "Code",
    "Demonstrations",
    "Example",
    "Fields",
    "Forfeit",
    "Metric",
    "Paragraph",
    "ParleyError",
    "Problem",
    "Prompt",
    "Question",
    "Reader",
    "RecordEnded",
    "Referee",
    "Result",
    "Role",
    "Said",
    "Scores",
    "Seat",
    "Sight",
    "Task",
    "TaskError",
    "Text",
    "UsageError",
    "Vetting",
    "View",
    "Word",
    "WordList",
    "WordPair",
    "rejudge",
    "resume",
    "run",
    "run_async",
]
_LATE = {"run": "door", "run_async": "door", "resume": "door", "rejudge": "door", "Result": "result"}


def __getattr__(name: str) -> _Any:
    """What plays runs, and what only some tasks use, is imported at its first use."""
    if name not in _LATE:
        raise AttributeError(f"module 'parley' has no attribute {name!r}")
    return getattr(_import_module(f"parley.{_LATE[name]}"), name)
