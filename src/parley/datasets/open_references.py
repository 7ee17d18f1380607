"""Works of reference that tasks want, opened: dictionaries, and worked examples of questions."""

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
from parley.rules.items import Question
from parley.rules.references import Demonstrations, Reference, WordList
from parley.rules.task import Task

PUNCTUATION = re.compile(r"[?;:,\"'“”‘’「」『』《》。、…_]|\.(?!\d)|(?<=[^\W\d]{2})!")


class PlayedItems(NamedTuple):
    """What a task is played on."""

    dataset: str | None
    items: Sequence[Any]


def open_references(
    task: Task, dataset: str | None = None, items: Sequence[Any] = ()
) -> dict[str, Reference]:
    """Every work that a task wants, opened for what it is played on."""
    with errors_of_task(task, "works"):
        works = dict(task.works())
    for name, wanted in works.items():
        if type(wanted) not in OPENED:
            kinds = " or ".join(f"parley.{kind.__name__}(…)" for kind in OPENED)
            raise TaskError(f"{task.name}: works()[{name!r}] wants {kinds}, found {wanted!r:.80}")
    return {
        name: OPENED[type(wanted)](wanted, PlayedItems(dataset, items))
        for name, wanted in works.items()
    }


def select_examples(wanted: Demonstrations, played: PlayedItems) -> ExampleCollection:
    """The examples that are wanted, less those whose words are themselves asked, whatever their
    choices."""
    source = wanted.source or played.dataset or ""
    found = load_examples(source, Question, own=not wanted.source) if source else []
    asked = {fold_text(each.question) for each in played.items}
    left = [asdict(each) for each in found if fold_text(each.question) not in asked]
    usual = (usual_shots(source, Question) if source else None) or wanted.usual
    count = min(usual, len(left)) if wanted.count is None else wanted.count
    if len(left) < count or (wanted.source and not left):
        there = (
            f"{source} has {len(left)} that are not asked"
            if found
            else f"{source or 'what is played on'} has none"
        )
        raise UsageError(
            f"wanted {count or 'some'} examples, and {there}: name others by --set "
            f"shots_from=NAME|PATH, or set shots=0"
        )
    return ExampleCollection(source, left, count, len(found) - len(left))


def question_identity(question: Question) -> tuple[str, frozenset[str]]:
    """What makes a question the same as another, in whatever order its choices stand."""
    return fold_text(question.question), frozenset(map(fold_text, question.choices))


def fold_text(text: str) -> str:
    """Words whatever their case, width and punctuation; signs that mean something in a sum stay."""
    return " ".join(PUNCTUATION.sub(" ", numerals.fold_widths(text).casefold()).split())


OPENED: dict[type, Callable[[Any, PlayedItems], Reference]] = {
    WordList: lambda wanted, played: open_lexicon(wanted),
    Demonstrations: select_examples,
}


@dataclass(frozen=True, eq=False)
class ExampleCollection:
    """Worked examples of questions, so many of which are shown before a question."""

    questions: ClassVar[tuple[str, ...]] = ("before",)
    drawn: ClassVar[tuple[str, ...]] = ()

    name: str
    examples: Sequence[Mapping[str, Any]]  # the fields of questions
    count: int
    left_out: int = 0  # questions that are themselves asked

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
        rest = f"; {self.left_out} left out, because asked" if self.left_out else ""
        if not self.count:
            return f"none: there are no examples{rest}; --set shots_from=NAME|PATH names some"
        return (
            f"{self.count} before each question, "
            f"from {self.name} ({len(self.examples)} there){rest}"
        )

    @cached_property
    def subjects(self) -> dict[str, list[Mapping[str, Any]]]:
        """Examples by their subject."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for each in self.examples:
            found.setdefault(each["subject"], []).append(each)
        return found

    def before(self, subject: str) -> list[Mapping[str, Any]]:
        """The first examples of a subject, if it has enough, else the first of all."""
        own = self.subjects.get(subject, ())
        return list(own if len(own) >= self.count else self.examples)[: self.count]
