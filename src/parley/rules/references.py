"""Works of reference: what a rule looks things up in. A task says which it wants, the answers go into the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from random import Random
from typing import Any, ClassVar, NamedTuple, Protocol
from unicodedata import name as unicode_name
from unicodedata import normalize

from parley.errors import TaskError, UsageError, unknown


class Lot(NamedTuple):
    """By what a work draws without putting back: the seed that orders all there is, and a number in that order."""

    seed: int
    number: int = 0


class Work(Protocol):
    """A work that lies open. Those of its methods that it names answer a rule's questions by plain data, always alike."""

    questions: ClassVar[tuple[str, ...]]
    drawn: ClassVar[tuple[str, ...]]  # of these the ones that are answered by lot, which comes before what else is given

    @property
    def facts(self) -> str:
        """Which work it is: its name, its size, and a digest of all that is in it."""

    @property
    def told(self) -> str:
        """What was read, and what of it was left out, for whoever begins a run."""


@dataclass(frozen=True)
class WordList:
    """Wanted: a dictionary made of these lists, each a name or a file; of words of one length or script only, if so wanted."""

    lists: tuple[str, ...]
    length: int | None = None
    simplified: bool = False  # Chinese: traditional characters count as their simplified form
    script: str = ""  # a word that stands in the Unicode name of every character, like IDEOGRAPH
    common: int | None = None  # there must be words to begin with, which occur so often and which another can follow

    def __post_init__(self) -> None:
        if not self.lists:
            raise UsageError("a dictionary wants at least one list of words: a name or a file")

    def takes(self, word: str) -> bool:
        """Whether a word can be of any use."""
        return self.length in (None, len(word)) and written_in(self.script, word)


def written_in(script: str, word: str) -> bool:
    """Whether all characters of a word are of a script."""
    return not script or all(script in unicode_name(character, "") for character in word)


def answered(works: Mapping[str, Any], name: str, question: str, given: Sequence[Any], task: str, lot: Lot) -> Any:
    """What a work says to a question; who asks what nothing answers has made a mistake."""
    if name not in works:
        raise TaskError(f"{task}: {unknown('work of reference', name, works)}")
    if question not in works[name].questions:
        raise TaskError(f"{task}: {unknown(f'question to the {name}:', question, works[name].questions)}")
    drawn = (lot,) if question in works[name].drawn else ()
    return getattr(works[name], question)(*drawn, *given)


@dataclass(frozen=True)
class Demonstrations:
    """Wanted: worked examples of questions, of the dataset that is played on or of another source; none that is asked.

    Without a count as many as usual, or as there are.
    """

    source: str = ""  # a dataset or a file
    count: int | None = None
    usual: int = 5


@dataclass(frozen=True, eq=False)
class Collection:
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
        return f"{self.count},{self.name}@{blake2b(content.encode(), digest_size=4).hexdigest()}" if self.count else "0"

    @property
    def told(self) -> str:
        rest = f"; {self.left_out} left out, because asked" if self.left_out else ""
        if not self.count:
            return f"none: there are no examples{rest}; --set shots_from=NAME|PATH names some"
        return f"{self.count} before each question, from {self.name} ({len(self.examples)} there){rest}"

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


@dataclass(frozen=True, eq=False)
class Lexicon:
    """A dictionary: words with their frequencies, and the simplified form of each traditional character.

    A few characters are both: 乾 is a simplified character in 乾坤 and the traditional form of 干 elsewhere. `doubtful` has
    these; either form finds a word, which is spelled in one way.
    """

    name: str
    words: Mapping[str, int]
    forms: Mapping[str, str]
    doubtful: Mapping[str, str]
    left_out: int = 0  # words that are of no use
    common: int | None = None  # how often a word must occur to begin with, where that is asked for

    questions: ClassVar[tuple[str, ...]] = ("entry", "after", "opening")
    drawn: ClassVar[tuple[str, ...]] = ("opening",)

    @classmethod
    def of(
        cls,
        name: str,
        words: Mapping[str, int],
        forms: Mapping[str, str] | None = None,
        doubtful: Mapping[str, str] | None = None,
        left_out: int = 0,
        common: int | None = None,
    ) -> Lexicon:
        """A dictionary of these words in simplified characters; spellings that differ in script only are one word.

        Of these a simplified one counts, then the more frequent, then the one with the doubtful character: nobody
        writes 乾 for 干 by mistake, but lists that were converted by machine have 干 for 乾.
        """
        made = cls(name, {}, forms or {}, doubtful or {})
        groups: dict[str, list[tuple[bool, int, bool, str]]] = {}
        for word, frequency in words.items():
            plain, other = made.plain(word), made.other(word)
            groups.setdefault(other, []).append((plain == word, frequency, plain != other, plain))
        spelled = {max(group)[-1]: max(frequency for _, frequency, _, _ in group) for group in groups.values()}
        return cls(name, spelled, made.forms, made.doubtful, left_out, common)

    def plain(self, word: str) -> str:
        """A word in simplified characters, as far as that is beyond doubt."""
        return "".join(self.forms.get(each, each) for each in normalize("NFKC", word))

    def other(self, word: str) -> str:
        """A word with doubtful characters in their other form too."""
        return "".join(self.doubtful.get(each, each) for each in self.plain(word))

    @cached_property
    def spellings(self) -> dict[str, str]:
        """How a word is spelled, by its other form."""
        return {self.other(word): word for word in self.words}

    @cached_property
    def beginnings(self) -> dict[str, list[str]]:
        """Words by their first character."""
        found: dict[str, list[str]] = {}
        for word in self.words:
            found.setdefault(word[0], []).append(word)
        return found

    @cached_property
    def facts(self) -> str:
        content = repr([*sorted(self.words.items()), *sorted(self.forms.items()), *sorted(self.doubtful.items())])
        return f"{self.name}:{len(self.words)}@{blake2b(content.encode(), digest_size=4).hexdigest()}"

    @property
    def told(self) -> str:
        begin = "" if self.common is None else f", {len(self.openings(self.common)):,} of them to begin with"
        rest = f"; left out: {self.left_out:,} of another length or script" if self.left_out else ""
        return f"{self.name}: {len(self.words):,} words{begin}{rest}"

    def entry(self, word: str) -> dict[str, Any]:
        """How a word is spelled here, and whether it is here at all."""
        found = self.spellings.get(self.other(word))
        return {"word": found or self.plain(word), "known": found is not None}

    def after(self, word: str) -> Sequence[str]:
        """All words that begin with the last character of this one, itself excepted."""
        return [each for each in self.beginnings.get(word[-1], ()) if each != word]

    @cached_property
    def followed(self) -> list[str]:
        """Words that another one can follow."""
        return [word for word in self.words if self.after(word)]

    def openings(self, common: int) -> list[str]:
        """Words that another one can follow, and that occur so often; where the lists have no frequencies, all of the former."""
        if common in self._openings:
            return self._openings[common]
        if not self.followed:
            raise UsageError(f"dictionary {self.name}: no word can be followed by another")
        counted = max(self.words.values()) > 1
        found = [word for word in self.followed if not counted or self.words[word] >= common]
        if not found:
            most = max(self.words[word] for word in self.followed)
            raise UsageError(
                f"dictionary {self.name}: no word that occurs {common} times or more can be followed by another; "
                f"the most frequent that can occurs {most} times"
            )
        return self._openings.setdefault(common, found)

    @cached_property
    def _openings(self) -> dict[int, list[str]]:
        """By how often they occur, once they are known."""
        return {}

    def opening(self, lot: Lot, common: int = 1) -> str:
        """A word to begin with; none is drawn twice before all have been."""
        found = self.openings(common)
        return found[shuffled(lot.seed, len(found))[lot.number % len(found)]]


@lru_cache(maxsize=8)
def shuffled(seed: int, count: int) -> list[int]:
    """The numbers below `count` in an order drawn by a seed."""
    return Random(seed).sample(range(count), count)
