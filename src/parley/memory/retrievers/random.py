"""`random`: stored texts drawn at random, as a control with irrelevant experiences."""

from __future__ import annotations

from hashlib import sha256
from random import Random

import numpy as np

from parley.memory import Neighbour, Search
from parley.memory.retrievers._registry import refuse_name_after


class RandomDraw:
    """Draws with the search's seed and the query's words, so that neither the order of queries nor
    that of stored texts matters. Results keep the order in which they were drawn."""

    name, version, notice = "random", "1", ""

    def prepare(self) -> None:
        pass

    def search(self, wanted: Search) -> list[list[Neighbour]]:
        texts = wanted.stored
        # equal texts by their order
        order = np.array(sorted(range(len(texts)), key=lambda place: texts[place]), np.int64)
        found = []
        for row, query in enumerate(wanted.queries):
            barred = wanted.barred(slice(row, row + 1))
            allowed = order if barred is None else order[~barred[0][order]]
            drawing = Random(sha256(f"{wanted.seed}\0{query}".encode()).digest())
            drawn = drawing.sample(range(len(allowed)), min(wanted.k, len(allowed)))
            found.append([Neighbour(int(allowed[place]), 0.0) for place in drawn])
        return found


def make(rest: str) -> RandomDraw:
    refuse_name_after("random", rest)
    return RandomDraw()
