"""What participants remember of finished matches, and the protocol of the retrievers that search
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Barred: TypeAlias = NDArray[np.bool_]

# Which subjects are searched: all, the query's own, all but the query's own.
Scope: TypeAlias = Literal["all", "subject", "other"]

# The retrievers that search nothing and show the task's own worked examples: the same in every
# stage ("keep"), or shuffled in each stage ("shuffle"). With all others, experiences replace the
# examples, and the examples fill up to k.
OWN_EXAMPLES: dict[str, Literal["keep", "shuffle"]] = {"fixed": "keep", "none": "shuffle"}


class Neighbour(NamedTuple):
    """One stored text that was found for a query."""

    stored: int  # its place among the stored texts
    distance: float  # L2 for dense retrievers; for bm25 minus its score; 0.0 for random


@dataclass(frozen=True)
class Search:
    """The queries of a whole stage, and the texts to search."""

    queries: Sequence[str]
    stored: Sequence[str]
    k: int
    query_items: Sequence[int]  # equal numbers stand for the same item
    stored_items: Sequence[int]
    mask: bool = False  # leave out stored texts of the query's own item
    query_subjects: Sequence[str] = ()
    stored_subjects: Sequence[str] = ()
    scope: Scope = "all"
    seed: str = ""  # for retrievers that draw

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k must be at least 1, not {self.k}")
        lengths = {
            "query_items": (len(self.query_items), len(self.queries)),
            "stored_items": (len(self.stored_items), len(self.stored)),
        }
        if self.scope != "all":
            lengths["query_subjects"] = len(self.query_subjects), len(self.queries)
            lengths["stored_subjects"] = len(self.stored_subjects), len(self.stored)
        for name, (found, texts) in lengths.items():
            if found != texts:
                raise ValueError(f"{name} needs one entry per text: {texts}, not {found}")

    def barred(self, rows: slice) -> Barred | None:
        """Which stored texts mask and scope leave out, a row for each query; None if none."""
        found: Barred | None = None
        if self.mask:
            queries, stored = self._items
            found = queries[rows, None] == stored
        if self.scope != "all":
            queries, stored = self._subjects
            other = queries[rows, None] != stored
            outside = other if self.scope == "subject" else ~other
            found = outside if found is None else found | outside
        return found

    @cached_property
    def _items(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        import numpy as np

        return np.array(self.query_items, np.int64), np.array(self.stored_items, np.int64)

    @cached_property
    def _subjects(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        import numpy as np

        numbers: dict[str, int] = {}
        queries, stored = (
            np.array([numbers.setdefault(each, len(numbers)) for each in subjects], np.int64)
            for subjects in (self.query_subjects, self.stored_subjects)
        )
        return queries, stored


class Retriever(Protocol):
    """Finds the stored texts that are nearest to a query."""

    @property
    def name(self) -> str:
        """As typed: `hf/facebook/contriever`."""

    @property
    def version(self) -> str:
        """Changes whenever its results may change: part of a run's identity and of cache keys."""

    @property
    def notice(self) -> str:
        """What the user should know about the searches so far; empty if nothing."""

    def prepare(self) -> None:
        """Download and load what a search needs, before the run file is created; raises an error
        that says what the user can do."""

    def search(self, wanted: Search) -> list[list[Neighbour]]:
        """For each query at most k stored texts, nearest first, ties in their stored order."""
