"""Works of reference: dictionaries and the like, in which a rule looks things up. A task declares
which ones it needs; every answer is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol
from unicodedata import name as unicode_name

from parley.errors import TaskError, UsageError, unknown_name


class DrawOrder(NamedTuple):
    """How a work of reference draws without replacement: a seed that shuffles its entries, and a
    position in that order."""

    seed: int
    number: int = 0


class Reference(Protocol):
    """A loaded work of reference. A rule may call the methods named in `questions`. They return
    plain data, the same for the same arguments."""

    questions: ClassVar[tuple[str, ...]]
    # questions that draw an entry: they take a DrawOrder before their other arguments
    drawn: ClassVar[tuple[str, ...]]

    @property
    def facts(self) -> str:
        """The identity of the work: its name, its size, and a digest of its content."""

    @property
    def told(self) -> str:
        """What was read and what was left out, shown when a run begins."""


@dataclass(frozen=True)
class WordList:
    """A dictionary that a task needs: these lists (names or files) joined, optionally only words of
    one length or script."""

    lists: tuple[str, ...]
    length: int | None = None
    simplified: bool = False  # Chinese: traditional characters count as their simplified form
    script: str = ""  # a word in the Unicode name of every character, like IDEOGRAPH
    # the dictionary must have start words that occur this often and that another word can follow
    common: int | None = None

    def __post_init__(self) -> None:
        if not self.lists:
            raise UsageError("a dictionary needs at least one word list: give a name or a file")

    def takes(self, word: str) -> bool:
        """Whether a word has the right length and script."""
        return self.length in (None, len(word)) and is_in_script(self.script, word)


def is_in_script(script: str, word: str) -> bool:
    return not script or all(script in unicode_name(character, "") for character in word)


def look_up(
    works: Mapping[str, Any],
    name: str,
    question: str,
    given: Sequence[Any],
    task: str,
    draw_order: DrawOrder,
) -> Any:
    """Ask a work of reference. Raises TaskError for an unknown work or question."""
    if name not in works:
        raise TaskError(f"{task}: {unknown_name('reference work', name, works)}")
    if question not in works[name].questions:
        raise TaskError(
            f"{task}: {unknown_name(f'question to {name}:', question, works[name].questions)}"
        )
    drawn = (draw_order,) if question in works[name].drawn else ()
    return getattr(works[name], question)(*drawn, *given)


@dataclass(frozen=True)
class Demonstrations:
    """Worked examples that a task shows, from its dataset or another source. A question that is
    asked is never used as an example.

    Without a count there are `usual` examples, or fewer if the source has fewer.
    """

    source: str = ""  # a dataset or a file
    count: int | None = None
    usual: int = 5
