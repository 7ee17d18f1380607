"""Byte-pair tokens (BPE) of Llama 2, as a `tokenizer.json` describes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from pathlib import Path

import orjson

SPACE = "▁"  # stands for a space, and before every text
# No token continues from a word into the next space.
WORD = re.compile(f"{SPACE}*[^{SPACE}]+|{SPACE}+")
MOST_WORDS = 100_000  # whose tokens are kept


class BytePairs:
    """Splits texts into tokens: the neighbours with the lowest rank are merged first."""

    def __init__(self, file: Path) -> None:
        about = orjson.loads(file.read_bytes())
        self.vocabulary: dict[str, int] = about["model"]["vocab"]
        self._special = {each["content"]: each["id"] for each in about["added_tokens"]}
        self._marks = re.compile("(" + "|".join(map(re.escape, self._special)) + ")")
        self._bytes = [self.vocabulary[f"<0x{byte:02X}>"] for byte in range(256)]
        self._merges: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, merge in enumerate(about["model"]["merges"]):
            left, right = merge.split(" ")
            pair = self.vocabulary[left], self.vocabulary[right]
            self._merges[pair] = rank, self.vocabulary[left + right]
        self._tokens: dict[str, Sequence[int]] = {}

    def split(self, text: str) -> list[int]:
        """The ids of a text's tokens."""
        found: list[int] = []
        for part in self._marks.split(text):
            if part in self._special:
                found.append(self._special[part])
            elif part:
                for word in WORD.findall(SPACE + part.replace(" ", SPACE)):
                    found += self._known_tokens(word)
        return found

    def _known_tokens(self, word: str) -> Sequence[int]:
        if (found := self._tokens.get(word)) is None:
            if len(self._tokens) >= MOST_WORDS:
                self._tokens.clear()
            found = self._tokens[word] = self._merge(self._characters(word))
        return found

    def _characters(self, word: str) -> list[int]:
        """One token for each character, or its bytes where the vocabulary lacks it."""
        found: list[int] = []
        for character in word:
            if (number := self.vocabulary.get(character)) is not None:
                found.append(number)
            else:
                content = character.encode("utf-8", "surrogatepass")
                found += [self._bytes[byte] for byte in content]
        return found

    def _merge(self, tokens: list[int]) -> Sequence[int]:
        """Merge until no pair can be merged; a token that was merged into the one before it
        is -1."""
        following = list(range(1, len(tokens) + 1))
        previous = list(range(-1, len(tokens) - 1))
        merges = self._merges
        waiting = [
            (merges[pair][0], place, pair)
            for place, pair in enumerate(pairwise(tokens))
            if pair in merges
        ]
        heapify(waiting)
        while waiting:
            _, place, pair = heappop(waiting)
            right = following[place]
            if right >= len(tokens) or (tokens[place], tokens[right]) != pair:
                continue  # one of them has been merged meanwhile
            tokens[place], tokens[right] = merges[pair][1], -1
            behind = following[place] = following[right]
            if behind < len(tokens):
                previous[behind] = place
            for left, other in ((previous[place], place), (place, behind)):
                if left >= 0 and other < len(tokens):
                    new = tokens[left], tokens[other]
                    if new in merges:
                        heappush(waiting, (merges[new][0], left, new))
        return [token for token in tokens if token >= 0]
