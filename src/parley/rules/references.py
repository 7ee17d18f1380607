"""Works of reference: what a rule looks things up in. A task says which it wants, the answers go
into the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol
from unicodedata import name as unicode_name

from parley.errors import TaskError, UsageError, unknown


class Lot(NamedTuple):
    """By what a work draws without putting back: the seed that orders all there is, and a number in
    that order."""

    seed: int
    number: int = 0


class Work(Protocol):
    """A work that lies open. Those of its methods that it names answer a rule's questions by plain
    data, always alike."""

    questions: ClassVar[tuple[str, ...]]
    # of these the ones that are answered by lot, which comes before what else is given
    drawn: ClassVar[tuple[str, ...]]

    @property
    def facts(self) -> str:
        """Which work it is: its name, its size, and a digest of all that is in it."""

    @property
    def told(self) -> str:
        """What was read, and what of it was left out, for whoever begins a run."""


@dataclass(frozen=True)
class WordList:
    """Wanted: a dictionary made of these lists, each a name or a file; of words of one length or
    script only, if so wanted."""

    lists: tuple[str, ...]
    length: int | None = None
    simplified: bool = False  # Chinese: traditional characters count as their simplified form
    script: str = ""  # a word that stands in the Unicode name of every character, like IDEOGRAPH
    # there must be words to begin with, which occur so often and which another can follow
    common: int | None = None

    def __post_init__(self) -> None:
        if not self.lists:
            raise UsageError("a dictionary wants at least one list of words: a name or a file")

    def takes(self, word: str) -> bool:
        """Whether a word can be of any use."""
        return self.length in (None, len(word)) and written_in(self.script, word)


def written_in(script: str, word: str) -> bool:
    """Whether all characters of a word are of a script."""
    return not script or all(script in unicode_name(character, "") for character in word)


def answered(
    works: Mapping[str, Any], name: str, question: str, given: Sequence[Any], task: str, lot: Lot
) -> Any:
    """What a work says to a question; who asks what nothing answers has made a mistake."""
    if name not in works:
        raise TaskError(f"{task}: {unknown('work of reference', name, works)}")
    if question not in works[name].questions:
        raise TaskError(
            f"{task}: {unknown(f'question to the {name}:', question, works[name].questions)}"
        )
    drawn = (lot,) if question in works[name].drawn else ()
    return getattr(works[name], question)(*drawn, *given)


@dataclass(frozen=True)
class Demonstrations:
    """Wanted: worked examples of questions, of the dataset that is played on or of another source;
    none that is asked.

    Without a count as many as usual, or as there are.
    """

    source: str = ""  # a dataset or a file
    count: int | None = None
    usual: int = 5
