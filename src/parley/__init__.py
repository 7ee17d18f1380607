"""Parley evaluates language models by letting them interact: they play, cooperate, are interviewed,
learn."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from parley.errors import Forfeit, ParleyError, RecordEnded, TaskError, UsageError
from parley.rules.bot_view import Sight
from parley.rules.items import Paragraph, Problem, Question, WordPair
from parley.rules.notes import Ended, Note, Vote, Votes
from parley.rules.pool import Example, Seat, View
from parley.rules.prompts import Prompt
from parley.rules.readers import Amount, Choice, Code, Fields, Reader, Said, Text, Word
from parley.rules.referee import Referee
from parley.rules.references import Demonstrations, WordList
from parley.rules.task import Metric, Role, Scores, Task, Vetting

if _TYPE_CHECKING:
    from parley.api import rejudge, resume, run, run_async
    from parley.results.result import Result

__version__ = "0.1.0"
__all__ = [
    "Amount",
    "Choice",
    "Code",
    "Demonstrations",
    "Ended",
    "Example",
    "Fields",
    "Forfeit",
    "Metric",
    "Note",
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
    "Vote",
    "Votes",
    "Word",
    "WordList",
    "WordPair",
    "rejudge",
    "resume",
    "run",
    "run_async",
]
_LATE = {
    "run": "api",
    "run_async": "api",
    "resume": "api",
    "rejudge": "api",
    "Result": "results.result",
}


def __getattr__(name: str) -> _Any:
    """What plays runs, and what only some tasks use, is imported at its first use."""
    if name not in _LATE:
        raise AttributeError(f"module 'parley' has no attribute {name!r}")
    return getattr(_import_module(f"parley.{_LATE[name]}"), name)
