"""A plan that screens items: models answer them until all have answered enough of them right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean

from parley.plans import Done, FinishedMatches, Marks, MatchSpec
from parley.plans.blocks import BlockMaker
from parley.plans.planned_matches import PlannedMatches
from parley.tables import plural


class ScreeningPlan:
    """Asks for as many items as are still missing, and never for more."""

    ahead = 0

    def __init__(
        self,
        series: BlockMaker,
        items: Sequence[str],
        repeats: int,
        wanted: int,
        metric: str,
        theta: float,
    ) -> None:
        self._wanted, self._metric, self._theta, self.status_line = wanted, metric, theta, ""
        self._series, self._items, self._repeats = series, items, repeats
        self._size = 0  # matches of an item
        self._size = len(self._matches(0)) if items else 0

    @property
    def first_match(self) -> MatchSpec:
        return self._matches(0)[0]

    def cautions(self) -> Sequence[str]:
        return ()

    def matches(self, finished: FinishedMatches) -> Iterator[Sequence[MatchSpec] | Done]:
        sure = asked = 0
        while True:
            self.status_line = (
                f"{sure} of the {self._wanted} requested items found, {asked} items screened so far"
            )
            if sure >= self._wanted:
                yield Done("plan_complete", self.status_line)
                return
            if asked == len(self._items):
                yield Done(
                    "items_exhausted",
                    f"only {plural(sure, 'item')} of the {self._wanted} requested passed the "
                    f"screening, and no item is left to screen ({asked} were screened)",
                )
                return
            turns = range(asked, min(asked + self._wanted - sure, len(self._items)))
            yield PlannedMatches(len(turns), self._size, partial(self._matches_after, asked))
            asked = turns.stop
            for turn in turns:
                specs = self._matches(turn)
                scores = finished.scores_between(specs[0].number, specs[-1].number)
                sure += all_confident(specs, scores, self._metric, self._theta)

    def _matches_after(self, asked: int, place: int) -> list[MatchSpec]:
        return self._matches(asked + place)

    def _matches(self, turn: int) -> list[MatchSpec]:
        """All matches on one item."""
        item, found = self._items[turn], list[MatchSpec]()
        for repeat in range(1, self._repeats + 1):
            before = turn * self._size + len(found)
            found += self._series.matches(before, item, item, repeat, turn)
        return found


def all_confident(
    specs: Sequence[MatchSpec], scores: Mapping[int, Marks], metric: str, theta: float
) -> bool:
    """Whether the mean of a metric over a model's answers to an item exceeds theta, for every
    model. A missing answer counts as 0."""
    given: dict[str, list[float]] = {}
    for spec in specs:
        for seat, alias in spec.seats.items():
            marks: Mapping[str, float | None] = scores[spec.number].get(seat, {})
            given.setdefault(alias, []).append(marks.get(metric) or 0.0)
    return all(fmean(values) > theta for values in given.values())
