"""Works of reference: what a rule looks things up in. A task says which it wants, the answers go into the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol
from unicodedata import normalize

from parley.errors import UsageError


class Work(Protocol):
    """A work that lies open. Its methods answer a rule's questions by plain data, always alike."""

    @property
    def facts(self) -> str:
        """Which work it is: its name, its size, and a digest of all that is in it."""

    @property
    def told(self) -> str:
        """What was read, and what of it was left out, for whoever begins a run."""


@dataclass(frozen=True)
class WordList:
    """Wanted: a dictionary made of these lists, each a name or a file; of words of one length only, if so wanted."""

    lists: tuple[str, ...]
    length: int | None = None
    simplified: bool = False  # Chinese: traditional characters count as their simplified form

    def __post_init__(self) -> None:
        if not self.lists:
            raise UsageError("a dictionary wants at least one list of words: a name or a file")


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
        rest = f"; {self.left_out} are left out, because they are asked" if self.left_out else ""
        return f"{self.count} before each question, from {self.name} ({len(self.examples)} there){rest}" if self.count else "none"

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
    left_out: int = 0  # words of another length

    @classmethod
    def of(
        cls,
        name: str,
        words: Mapping[str, int],
        forms: Mapping[str, str] | None = None,
        doubtful: Mapping[str, str] | None = None,
        left_out: int = 0,
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
        return cls(name, spelled, made.forms, made.doubtful, left_out)

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
        rest = f"; {self.left_out:,} of another length are left out" if self.left_out else ""
        return f"{self.name}: {len(self.words):,} words{rest}"

    def entry(self, word: str) -> dict[str, Any]:
        """How a word is spelled here, and whether it is here at all."""
        found = self.spellings.get(self.other(word))
        return {"word": found or self.plain(word), "known": found is not None}

    def after(self, word: str) -> Sequence[str]:
        """All words that begin with the last character of this one, itself excepted."""
        return [each for each in self.beginnings.get(word[-1], ()) if each != word]

    @cached_property
    def openings(self) -> list[str]:
        """Words that another one can follow."""
        return [word for word in self.words if self.after(word)]

    def opening(self, at: float, common: int = 1) -> str:
        """A word that another can follow, the share `at` of the way through those that occur so often."""
        found = [word for word in self.openings if self.words[word] >= common]
        if not found:
            raise UsageError(f"dictionary {self.name}: no word that occurs {common} times or more can be followed by another")
        return found[int(at * len(found))]
