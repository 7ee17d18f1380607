"""`bm25`: a sparse retriever, by the words that two texts share.

Lucene's variant (k1 = 1.5, b = 0.75), whose weights are never negative. Of a stored text of length
n that has a word c times, among N texts of mean length m of which f have the word, the word adds

    log(1 + (N - f + 0.5) / (f + 0.5)) * c / (c + k1 * (1 - b + b * n / m))

each time it occurs in the query. All stored texts count for N, m and f, excluded ones too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parley.memory import Neighbour, Search
from parley.memory.nearest import take_nearest
from parley.memory.retrievers._registry import refuse_name_after

K1, B = 1.5, 0.75
# Words and numbers; scripts without spaces (Chinese, Japanese kana) by the character.
UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")


class BM25:
    name, version, notice = "bm25", "1", ""

    def prepare(self) -> None:
        pass

    def search(self, wanted: Search) -> list[list[Neighbour]]:
        index = WordIndex([words_of_text(text) for text in wanted.stored])
        found = []
        for row, query in enumerate(wanted.queries):
            distances = -index.score(words_of_text(query))
            if (barred := wanted.barred(slice(row, row + 1))) is not None:
                distances[barred[0]] = np.inf
            found.append(take_nearest(distances, wanted.k))
        return found


class WordIndex:
    """For every word the texts that have it, and what it adds to their scores."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self.size = len(texts)
        lengths = np.array([len(words) for words in texts], np.float64)
        mean = lengths.mean() if lengths.any() else 1.0
        dampers = K1 * (1 - B + B * lengths / mean)
        places: dict[str, list[int]] = {}
        counts: dict[str, list[int]] = {}
        for place, words in enumerate(texts):
            for word, count in Counter(words).items():
                places.setdefault(word, []).append(place)
                counts.setdefault(word, []).append(count)
        self.places = {word: np.array(found, np.int64) for word, found in places.items()}
        self.weights: dict[str, NDArray[np.float64]] = {}
        for word, found in self.places.items():
            rarity = np.log(1 + (self.size - len(found) + 0.5) / (len(found) + 0.5))
            times = np.array(counts[word], np.float64)
            self.weights[word] = rarity * times / (times + dampers[found])

    def score(self, query: Sequence[str]) -> NDArray[np.float64]:
        """The score of every text."""
        total = np.zeros(self.size)
        for word in query:
            if (found := self.places.get(word)) is not None:
                total[found] += self.weights[word]
        return total


def words_of_text(text: str) -> list[str]:
    """The words of a text, without case."""
    return WORD.findall(text.casefold())


def make(rest: str) -> BM25:
    refuse_name_after("bm25", rest)
    return BM25()
