"""The matches of a run that have ended, without their scores in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from parley.plans import Marks
from parley.store.number_set import NumberSet
from parley.store.reader import RunReader


class FinishedOnRecord:
    """Knows which matches have ended. Their scores are read from the record."""

    def __init__(
        self, numbers: NumberSet, open_reader: Callable[[], AbstractContextManager[RunReader]]
    ) -> None:
        """`numbers` are the matches that have ended so far. A new reader reads scores: the run may
        have gone on."""
        self._numbers, self._open_reader = numbers, open_reader

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, number: object) -> bool:
        return number in self._numbers

    def have_ended(self, first: int, last: int) -> bool:
        return all(number in self._numbers for number in range(first, last + 1))

    def add(self, number: int) -> None:
        """Add a match that has ended and is on record."""
        self._numbers.add(number)

    def scores_between(self, first: int, last: int) -> Mapping[int, Marks]:
        with self._open_reader() as reader:
            return reader.scores.by_match(first, last)
