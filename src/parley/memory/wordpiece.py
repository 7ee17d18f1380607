"""WordPiece tokens for uncased BERT, as a `tokenizer.json` describes them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from string import punctuation

import orjson

# Scripts without spaces between words: every character is a word.
CHINESE = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
CONTROL = ("Cc", "Cf", "Co", "Cs")  # unassigned characters are kept
LONGEST = 100  # characters of a word; a longer one is unknown
MOST_WORDS = 100_000  # whose pieces are kept


class Normalisation(dict[int, str]):
    """A table for `str.translate`: removes control characters and accents, lowers capitals, puts
    spaces around Chinese characters and punctuation."""

    def __missing__(self, code: int) -> str:
        self[code] = found = normalise_character(chr(code))
        return found


def normalise_character(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in CONTROL:
        return ""
    if character.isspace():
        return " "
    plain = "".join(
        part
        for part in unicodedata.normalize("NFD", character)
        if unicodedata.category(part) != "Mn"
    )
    small = "".join(part.lower() for part in plain)
    spaced = "".join(f" {part} " if is_punctuation(part) else part for part in small)
    code = ord(character)
    return f" {spaced} " if any(low <= code <= high for low, high in CHINESE) else spaced


def is_punctuation(character: str) -> bool:
    return character in punctuation or unicodedata.category(character).startswith("P")


class WordPiece:
    """Splits texts into pieces of words that the vocabulary has, the longest first."""

    def __init__(self, file: Path) -> None:
        about = orjson.loads(file.read_bytes())
        self.vocabulary: dict[str, int] = about["model"]["vocab"]
        special = {each["content"]: each["id"] for each in about["added_tokens"]}
        self.first, self.last = special["[CLS]"], special["[SEP]"]
        self.unknown = special["[UNK]"]
        self._special = special
        self._marks = re.compile("(" + "|".join(map(re.escape, special)) + ")")
        self._normalisation = Normalisation()
        self._pieces: dict[str, Sequence[int]] = {}

    def split(self, text: str, most: int) -> list[int]:
        """The ids of a text's tokens with [CLS] and [SEP], at most `most` of them."""
        found = [self.first]
        for part in self._marks.split(text):
            if part in self._special:
                found.append(self._special[part])
                continue
            for word in part.translate(self._normalisation).split():
                found += self.pieces(word)
                if len(found) >= most:
                    break
        return [*found[: most - 1], self.last]

    def pieces(self, word: str) -> Sequence[int]:
        """The tokens of one word."""
        if (found := self._pieces.get(word)) is None:
            if len(self._pieces) >= MOST_WORDS:
                self._pieces.clear()
            found = self._pieces[word] = self._cut(word)
        return found

    def _cut(self, word: str) -> Sequence[int]:
        if len(word) > LONGEST:
            return (self.unknown,)
        found, start = list[int](), 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else f"##{word[start:end]}"
                if (number := self.vocabulary.get(piece)) is not None:
                    break
            else:
                return (self.unknown,)
            found.append(number)
            start = end
        return found
