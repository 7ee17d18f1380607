"""Compares the matches on record with those that the plan of a run asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext

from parley.plans import Done, MatchSpec, Plan, PlanCursor
from parley.store.finished_matches import FinishedOnRecord
from parley.store.number_set import NumberSet
from parley.store.reader import RunReader
from parley.store.types import MatchRow


class PlanReplay:
    """Asks a plan for its matches again, as far as the scores on record lead."""

    def __init__(self, plan: Plan, reader: RunReader) -> None:
        self._plan = plan
        ended = NumberSet(reader.matches.ended())
        self._finished = FinishedOnRecord(ended, lambda: nullcontext(reader))
        self.end: Done | None = None  # how the plan ends, if it does

    def compare(
        self, matches: Iterable[MatchRow]
    ) -> Iterator[tuple[MatchRow | None, MatchSpec | None]]:
        """Every match on record with the planned match of its number, in the order of numbers; None
        where one of them is missing."""
        planned = self._planned()
        spec = next(planned, None)
        for match in matches:
            while spec is not None and spec.number < match.number:
                yield None, spec
                spec = next(planned, None)
            if spec is not None and spec.number == match.number:
                yield match, spec
                spec = next(planned, None)
            else:
                yield match, None
        while spec is not None:
            yield None, spec
            spec = next(planned, None)

    def _planned(self) -> Iterator[MatchSpec]:
        cursor = PlanCursor(self._plan, self._finished)
        while (matches := cursor.next_matches()) is not None:
            if isinstance(matches, Done):
                self.end = matches
                return
            yield from matches
