"""Open the works of reference that tasks need: dictionaries and worked examples of questions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

from parley.datasets.catalogue import load_examples, usual_shots
from parley.datasets.dictionaries import open_lexicon
from parley.errors import TaskError, UsageError
from parley.match.task_errors import errors_of_task
from parley.rules import numerals
from parley.rules.items.question import Question
from parley.rules.references import Demonstrations, Reference, WordList
from parley.rules.task import Task
from parley.tables import plural

PUNCTUATION = re.compile(r"[?;:,\"'“”‘’「」『』《》。、…_]|\.(?!\d)|(?<=[^\W\d]{2})!")


class PlayedItems(NamedTuple):
    """The dataset and items of a run."""

    dataset: str | None
    items: Sequence[Any]


def open_references(
    task: Task, dataset: str | None = None, items: Sequence[Any] = ()
) -> dict[str, Reference]:
    """Open every work of reference that a task needs for these items."""
    with errors_of_task(task, "works"):
        works = dict(task.works())
    for name, wanted in works.items():
        if type(wanted) not in OPENED:
            kinds = " or ".join(f"parley.{kind.__name__}(…)" for kind in OPENED)
            raise TaskError(f"{task.name}: works()[{name!r}] must be {kinds}, not {wanted!r:.80}")
    return {
        name: OPENED[type(wanted)](wanted, PlayedItems(dataset, items))
        for name, wanted in works.items()
    }


def select_examples(wanted: Demonstrations, played: PlayedItems) -> ExampleCollection:
    """The requested examples, without those whose question is asked in the run."""
    source = wanted.source or played.dataset or ""
    found = load_examples(source, Question, own=not wanted.source) if source else []
    asked = {fold_text(each.question) for each in played.items}
    left = [asdict(each) for each in found if fold_text(each.question) not in asked]
    usual = (usual_shots(source, Question) if source else None) or wanted.usual
    count = min(usual, len(left)) if wanted.count is None else wanted.count
    if len(left) < count or (wanted.source and not left):
        there = (
            f"{source} has only {len(left)} whose questions this run does not ask"
            if found
            else f"{source or 'the dataset'} has none"
        )
        wanted_text = plural(count, "worked example") if count else "worked examples"
        raise UsageError(
            f"this run needs {wanted_text}, but {there}: choose another source with --set "
            "shots_from=NAME (or a path), or use --set shots=0"
        )
    return ExampleCollection(source, left, count, len(found) - len(left))


def question_identity(question: Question) -> tuple[str, frozenset[str]]:
    """A key that is equal for questions with the same text and choices, in any order."""
    return fold_text(question.question), frozenset(map(fold_text, question.choices))


def fold_text(text: str) -> str:
    """A text without case, width and punctuation; signs that matter in formulas stay."""
    return " ".join(PUNCTUATION.sub(" ", numerals.fold_widths(text).casefold()).split())


OPENED: dict[type, Callable[[Any, PlayedItems], Reference]] = {
    WordList: lambda wanted, played: open_lexicon(wanted),
    Demonstrations: select_examples,
}


@dataclass(frozen=True, eq=False)
class ExampleCollection:
    """Worked examples of questions; `count` of them are shown before each question."""

    questions: ClassVar[tuple[str, ...]] = ("before",)
    drawn: ClassVar[tuple[str, ...]] = ()

    name: str
    examples: Sequence[Mapping[str, Any]]  # the fields of questions
    count: int
    left_out: int = 0  # examples whose question is asked in the run

    @cached_property
    def facts(self) -> str:
        content = repr([sorted(each.items()) for each in self.examples])
        return (
            f"{self.count},{self.name}@{blake2b(content.encode(), digest_size=4).hexdigest()}"
            if self.count
            else "0"
        )

    @property
    def told(self) -> str:
        rest = (
            f"; {self.left_out} left out, because this run asks the same questions"
            if self.left_out
            else ""
        )
        if not self.count:
            return (
                f"none, because the dataset has no worked examples{rest}; to add some, use "
                "--set shots_from=NAME (or a path)"
            )
        return (
            f"{self.count} before each question, "
            f"from {self.name} ({len(self.examples)} available){rest}"
        )

    @cached_property
    def subjects(self) -> dict[str, list[Mapping[str, Any]]]:
        found: dict[str, list[Mapping[str, Any]]] = {}
        for each in self.examples:
            found.setdefault(each["subject"], []).append(each)
        return found

    def before(self, subject: str) -> list[Mapping[str, Any]]:
        """The first examples of a subject if it has enough, otherwise the first of all."""
        own = self.subjects.get(subject, ())
        return list(own if len(own) >= self.count else self.examples)[: self.count]
