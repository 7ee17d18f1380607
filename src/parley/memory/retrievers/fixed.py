"""`fixed`: the task's own worked examples, unchanged in every stage. Any difference is noise."""

from __future__ import annotations

from parley.memory import Neighbour, Search
from parley.memory.retrievers._registry import refuse_name_after


class Fixed:
    name, version, notice = "fixed", "1", ""

    def prepare(self) -> None:
        pass

    def search(self, wanted: Search) -> list[list[Neighbour]]:
        return [[] for _ in wanted.queries]


def make(rest: str) -> Fixed:
    refuse_name_after("fixed", rest)
    return Fixed()
