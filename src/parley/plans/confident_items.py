"""A plan that screens items: models answer them until all have answered enough of them right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from parley.plans import Block, Done, MatchSpec
from parley.plans.blocks import BlockMaker
from parley.tables import plural


class ScreeningPlan:
    """Asks for as many items as are still missing, and never for more."""

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
        self._items: dict[str, list[MatchSpec]] = {}
        number = 0
        for turn, item in enumerate(items):
            specs: list[MatchSpec] = []
            for repeat in range(1, repeats + 1):
                specs += series.matches(number + len(specs), item, item, repeat, turn)
            self._items[item] = specs
            number += len(specs)

    @property
    def first_match(self) -> MatchSpec:
        return next(iter(self._items.values()))[0]

    def cautions(self) -> Sequence[str]:
        return ()

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done:
        known, names, asked = {block.name: block for block in finished}, list(self._items), 0
        while True:
            sure = sum(
                all_confident(known[name], self._items[name], self._metric, self._theta)
                for name in names[:asked]
            )
            self.status_line = (
                f"{sure} of the {self._wanted} requested items found, {asked} items screened so far"
            )
            if sure >= self._wanted:
                return Done("plan_complete", self.status_line)
            if asked == len(names):
                return Done(
                    "items_exhausted",
                    f"only {plural(sure, 'item')} of the {self._wanted} requested passed the "
                    f"screening, and no item is left to screen ({asked} were screened)",
                )
            batch = names[asked : asked + self._wanted - sure]
            if missing := [name for name in batch if name not in known]:
                return [spec for name in missing for spec in self._items[name]]
            asked += len(batch)


def all_confident(block: Block, specs: Sequence[MatchSpec], metric: str, theta: float) -> bool:
    """Whether the mean of a metric over a model's answers to an item exceeds theta, for every
    model. A missing answer counts as 0."""
    given: dict[str, list[float]] = {}
    for spec in specs:
        for seat, alias in spec.seats.items():
            marks: Mapping[str, float | None] = block.scores[spec.number].get(seat, {})
            given.setdefault(alias, []).append(marks.get(metric) or 0.0)
    return all(fmean(values) > theta for values in given.values())
