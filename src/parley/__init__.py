"""Parley evaluates language models by letting them interact: they play, cooperate, are interviewed,
learn."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from parley.api import Result, rejudge, resume, run, run_async
    from parley.errors import Forfeit, ParleyError, RecordEnded, TaskError, UsageError
    from parley.results.part import Part, Style
    from parley.results.scores import RunScores
    from parley.results.types import (
        Bar,
        Bars,
        Box,
        Boxes,
        HeatMap,
        Intervals,
        Lines,
        Point,
        Series,
        Share,
    )
    from parley.rules.bot_view import BotView
    from parley.rules.items import Items
    from parley.rules.items.os_entry import OSEntry, ShellScript
    from parley.rules.items.paragraph import Paragraph
    from parley.rules.items.problem import Problem
    from parley.rules.items.question import Question
    from parley.rules.items.word_pair import WordPair
    from parley.rules.notes import Ended, Note, Vote, Votes
    from parley.rules.pool import Example, Seat, View
    from parley.rules.prompts import Prompt
    from parley.rules.readers import Amount, Choice, Code, Fields, Reader, ReplyText, Text, Word
    from parley.rules.referee import Referee
    from parley.rules.references import Demonstrations, WordList
    from parley.rules.task import Metric, Role, Scores, Screening, Task
    from parley.runs.progress import ProgressEvent
    from parley.tables import Table

__version__ = "0.1.0"
__all__ = [
    "Amount",
    "Bar",
    "Bars",
    "BotView",
    "Box",
    "Boxes",
    "Choice",
    "Code",
    "Demonstrations",
    "Ended",
    "ExactAnswer",
    "Example",
    "Fields",
    "Forfeit",
    "HeatMap",
    "Intervals",
    "Items",
    "LetterChoice",
    "Lines",
    "Metric",
    "Note",
    "OSEntry",
    "Paragraph",
    "ParleyError",
    "Part",
    "Point",
    "Problem",
    "ProgressEvent",
    "Prompt",
    "Question",
    "Reader",
    "RecordEnded",
    "Referee",
    "ReplyText",
    "Result",
    "Role",
    "RunScores",
    "Scores",
    "Screening",
    "Seat",
    "Series",
    "Share",
    "ShellScript",
    "Style",
    "Table",
    "Task",
    "TaskError",
    "Text",
    "UsageError",
    "View",
    "Vote",
    "Votes",
    "Word",
    "WordList",
    "WordPair",
    "WriterEditorPrompts",
    "ask_judges",
    "compute_overlap",
    "corpus_score",
    "load_items",
    "play_writer_and_editor",
    "quote_conversation",
    "rejudge",
    "resume",
    "run",
    "run_async",
]
# where each name is defined, below `parley`
_HOME: dict[str, str] = {
    "Amount": "rules.readers",
    "Bar": "results.types",
    "Bars": "results.types",
    "Box": "results.types",
    "Boxes": "results.types",
    "BotView": "rules.bot_view",
    "Choice": "rules.readers",
    "Code": "rules.readers",
    "Demonstrations": "rules.references",
    "Ended": "rules.notes",
    "ExactAnswer": "tasks._common.answers",
    "Example": "rules.pool",
    "Fields": "rules.readers",
    "Forfeit": "errors",
    "HeatMap": "results.types",
    "Intervals": "results.types",
    "Items": "rules.items",
    "LetterChoice": "tasks._common.answers",
    "Lines": "results.types",
    "Metric": "rules.task",
    "Note": "rules.notes",
    "OSEntry": "rules.items.os_entry",
    "Paragraph": "rules.items.paragraph",
    "ParleyError": "errors",
    "Part": "results.part",
    "Point": "results.types",
    "Problem": "rules.items.problem",
    "ProgressEvent": "runs.progress",
    "Prompt": "rules.prompts",
    "Question": "rules.items.question",
    "Reader": "rules.readers",
    "RecordEnded": "errors",
    "Referee": "rules.referee",
    "ReplyText": "rules.readers",
    "Result": "api",
    "Role": "rules.task",
    "RunScores": "results.scores",
    "Scores": "rules.task",
    "Screening": "rules.task",
    "Seat": "rules.pool",
    "Series": "results.types",
    "Share": "results.types",
    "ShellScript": "rules.items.os_entry",
    "Style": "results.part",
    "Table": "tables",
    "Task": "rules.task",
    "TaskError": "errors",
    "Text": "rules.readers",
    "UsageError": "errors",
    "View": "rules.pool",
    "Vote": "rules.notes",
    "Votes": "rules.notes",
    "Word": "rules.readers",
    "WordList": "rules.references",
    "WordPair": "rules.items.word_pair",
    "WriterEditorPrompts": "tasks._common.writer_editor",
    "ask_judges": "tasks._common.writer_editor",
    "compute_overlap": "tasks._common.overlap",
    "corpus_score": "tasks._common.overlap",
    "load_items": "datasets.catalogue",
    "play_writer_and_editor": "tasks._common.writer_editor",
    "quote_conversation": "tasks._common.writer_editor",
    "rejudge": "api",
    "resume": "api",
    "run": "api",
    "run_async": "api",
}


def __getattr__(name: str) -> _Any:
    """Import a name at its first use, so that `import parley` and `parley --help` stay fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'parley' has no attribute {name!r}")
    value = getattr(_import_module(f"parley.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
