"""Dictionaries: word lists from packages and from the user's files, joined."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from unicodedata import normalize

from parley.datasets.files import ENDINGS, LocatedRow, file_ending, read_file_rows
from parley.downloads import Packaged, obtain_file
from parley.errors import Refused, UsageError, unknown_name
from parley.rules.references import DrawOrder, WordList
from parley.tables import plural

IDIOMS = Packaged(
    path="dictionary/chinese_idiom.zip",
    package="jionlp",
    version="1.5.31",
    sha256="29716f31cf50bde805045134ae4413a7126993f9db8f8075a1c36cdaafbd5fb7",
    size=16_533_609,
    variable="PARLEY_JIONLP_IDIOMS",
)


CHARACTERS = Packaged(
    path="dictionary/TSCharacters.txt",
    package="opencc-python-reimplemented",
    version="0.1.7",
    sha256="6b5a0a799bea2bb22c001f635eaa3fc2904310f0c08addbff275477a80ecf09a",
    size=481_813,
    variable="PARLEY_OPENCC_CHARACTERS",
    folder="opencc",
)


Words = dict[str, int]  # word: its frequency


def open_lexicon(wanted: WordList) -> Lexicon:
    """Open a dictionary. If a word is in several lists, its highest frequency counts."""
    words: Words = {}
    left_out: set[str] = set()
    for name in wanted.lists:
        every = load_word_list(name)
        found = {word: often for word, often in every.items() if wanted.takes(word)}
        if not found:
            kind = f"{wanted.length} characters" + (f" ({wanted.script})" if wanted.script else "")
            raise UsageError(
                f"dictionary {name} has {plural(len(every), 'word')}, but no word of {kind}: "
                "choose another dictionary"
            )
        left_out |= every.keys() - found.keys()
        for word, often in found.items():
            words[word] = max(often, words.get(word, 0))
    forms, doubtful = load_simplified_forms() if wanted.simplified else ({}, {})
    name = "+".join(Path(each).name for each in wanted.lists)
    made = Lexicon.of(name, words, forms, doubtful, len(left_out), wanted.common)
    if wanted.common is not None:
        made.openings(wanted.common)  # raises if there is none, before the run starts
    return made


def load_word_list(name: str) -> Words:
    """The words of one list, by its name or as a file."""
    if name in NAMED:
        return NAMED[name]()
    file = Path(name).expanduser()
    if not file.exists() and "/" not in name and not file.suffix:
        raise UsageError(
            f"{unknown_name('dictionary', name, NAMED)}; for a file write ./{name}.txt"
        )
    if file_ending(file) != ".txt" and file_ending(file) not in ENDINGS:
        raise UsageError(
            f"dictionary {name}: the name of the file must end in .txt, {', '.join(ENDINGS)}"
        )
    rows = read_word_lines(file) if file_ending(file) == ".txt" else read_file_rows(file)
    words = word_frequencies(rows)
    if not words:
        raise UsageError(
            f"dictionary {name} is empty: write one word per line, or a JSON list of words or "
            "of objects like {'word': …}"
        )
    return words


def read_word_lines(file: Path) -> Iterator[LocatedRow]:
    """The lines of a text file: a word each, and optionally a tab and its frequency."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"dictionary {file} cannot be read: {wrong}") from None
    yield from parse_word_lines(text, str(file))


def parse_word_lines(text: str, where: str) -> Iterator[LocatedRow]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            word, tab, often = line.partition("\t")
            yield LocatedRow(
                f"{where}, line {number}",
                number,
                {"word": word, **({"frequency": often.strip()} if tab else {})},
            )


def word_frequencies(rows: Iterable[LocatedRow]) -> Words:
    """Words with their frequencies. The error for a row without a word names the row."""
    words: Words = {}
    for located in rows:
        where, row = located.where, located.row
        found: Any = row if isinstance(row, dict) else {"word": row}
        word, often = found.get("word"), found.get("frequency", 1)
        if not isinstance(word, str) or not word.strip():
            said = ", ".join(map(str, row)) if isinstance(row, dict) else type(row).__name__
            raise UsageError(
                f"{where}: expected a word or an object with `word`; found {said or 'nothing'}"
            )
        try:
            count = int(often)
        except (TypeError, ValueError, OverflowError):
            count = -1
        if count < 0:
            raise UsageError(f"{where}: the frequency must be 0 or more, not {often!r}")
        words[word.strip()] = max(count, words.get(word.strip(), 0))
    return words


def fetch_lexicon_data(wanted: Packaged) -> bytes:
    try:
        return obtain_file(wanted).read_bytes()
    except Refused as wrong:
        raise UsageError(str(wrong)) from wrong


def load_jionlp_idioms() -> Words:
    """Chinese idioms with their frequencies in a corpus (package jionlp, Apache-2.0)."""
    with zipfile.ZipFile(io.BytesIO(fetch_lexicon_data(IDIOMS))) as packed:
        return word_frequencies(
            parse_word_lines(packed.read("chinese_idiom.txt").decode(), "jionlp")
        )


def load_simplified_forms() -> tuple[dict[str, str], dict[str, str]]:
    """Traditional characters with their simplified forms, and separately those that are also
    simplified characters (OpenCC, Apache-2.0)."""
    forms: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    for line in fetch_lexicon_data(CHARACTERS).decode().splitlines():
        character, _, found = line.partition("\t")
        simplified = found.split()
        if character in simplified and len(simplified) > 1:
            doubtful[character] = next(other for other in simplified if other != character)
        elif simplified != [character]:
            forms[character] = simplified[0]
    return forms, doubtful


NAMED: dict[str, Callable[[], Words]] = {"jionlp": load_jionlp_idioms}


@dataclass(frozen=True, eq=False)
class Lexicon:
    """A dictionary: words with their frequencies, and the simplified form of each traditional
    character.

    A few characters are both: 乾 is a simplified character in 乾坤 and the traditional form of 干
    elsewhere. `doubtful` has these; either form finds a word, which has one spelling.
    """

    name: str
    words: Mapping[str, int]
    forms: Mapping[str, str]
    doubtful: Mapping[str, str]
    left_out: int = 0  # number of words of another length or script
    common: int | None = None  # minimum frequency of a start word

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
        """A dictionary of these words in simplified characters. Spellings that differ only in
        script are one word.

        Its spelling is a simplified one if there is one, then the more frequent one, then the one
        with the doubtful character: nobody writes 乾 for 干 by mistake, but lists that were
        converted by machine have 干 for 乾.
        """
        made = cls(name, {}, forms or {}, doubtful or {})
        groups: dict[str, list[tuple[bool, int, bool, str]]] = {}
        for word, frequency in words.items():
            plain = made.plain(word)
            other = plain.translate(made._to_other)
            groups.setdefault(other, []).append((plain == word, frequency, plain != other, plain))
        spelled = {
            max(group)[-1]: max(frequency for _, frequency, _, _ in group)
            for group in groups.values()
        }
        return cls(name, spelled, made.forms, made.doubtful, left_out, common)

    def plain(self, word: str) -> str:
        """A word in simplified characters; doubtful characters stay."""
        return normalize("NFKC", word).translate(self._to_simplified)

    def other(self, word: str) -> str:
        """A word in simplified characters, with doubtful ones in their other form."""
        return self.plain(word).translate(self._to_other)

    @cached_property
    def _to_simplified(self) -> dict[int, str]:
        return {ord(character): form for character, form in self.forms.items()}

    @cached_property
    def _to_other(self) -> dict[int, str]:
        return {ord(character): form for character, form in self.doubtful.items()}

    @cached_property
    def spellings(self) -> dict[str, str]:
        """The spelling of each word, by its other form."""
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
        content = repr(
            [
                *sorted(self.words.items()),
                *sorted(self.forms.items()),
                *sorted(self.doubtful.items()),
            ]
        )
        return (
            f"{self.name}:{len(self.words)}@{blake2b(content.encode(), digest_size=4).hexdigest()}"
        )

    @property
    def told(self) -> str:
        begin = (
            ""
            if self.common is None
            else f", of which {len(self.openings(self.common)):,} can start a game"
        )
        rest = (
            f"; {self.left_out:,} words of another length or script were left out"
            if self.left_out
            else ""
        )
        return f"dictionary {self.name}: {len(self.words):,} words{begin}{rest}"

    def entry(self, word: str) -> dict[str, Any]:
        """The dictionary's spelling of a word, and whether the dictionary has it."""
        found = self.spellings.get(self.other(word))
        return {"word": found or self.plain(word), "known": found is not None}

    def after(self, word: str) -> Sequence[str]:
        """All other words that begin with the last character of this one."""
        return [each for each in self.beginnings.get(word[-1], ()) if each != word]

    @cached_property
    def followed(self) -> list[str]:
        """Words that another one can follow."""
        return [word for word in self.words if self.after(word)]

    def openings(self, common: int) -> list[str]:
        """Words that another word can follow and that occur at least `common` times; if the lists
        have no frequencies, all words that another can follow."""
        if common in self._openings:
            return self._openings[common]
        if not self.followed:
            raise UsageError(
                f"dictionary {self.name}: no word begins with the last character of another "
                "word, so no game can start: use a larger dictionary"
            )
        counted = max(self.words.values()) > 1
        found = [word for word in self.followed if not counted or self.words[word] >= common]
        if not found:
            most = max(self.words[word] for word in self.followed)
            raise UsageError(
                f"dictionary {self.name}: no word that can start a game occurs at least "
                f"{common} times (the most frequent one occurs {plural(most, 'time')}): set "
                f"common={most} or less"
            )
        return self._openings.setdefault(common, found)

    @cached_property
    def _openings(self) -> dict[int, list[str]]:
        """Start words by minimum frequency, computed once."""
        return {}

    def opening(self, order: DrawOrder, common: int = 1) -> str:
        """Draw a start word; none is drawn twice before all have been drawn."""
        found = self.openings(common)
        return found[shuffled_numbers(order.seed, len(found))[order.number % len(found)]]


@lru_cache(maxsize=8)
def shuffled_numbers(seed: int, count: int) -> list[int]:
    """The numbers below `count`, shuffled by a random seed."""
    return Random(seed).sample(range(count), count)
