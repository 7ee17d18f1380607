"""A plan that looks for items: they are put to models until enough are found that all answer
right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from parley.plans import Block, Done, MatchSpec
from parley.plans.blocks import Series


class Confident:
    """Asks for as many items as are still wanted, again and again: none is asked that need not
    be."""

    def __init__(
        self,
        series: Series,
        items: Sequence[str],
        repeats: int,
        wanted: int,
        metric: str,
        theta: float,
    ) -> None:
        self._wanted, self._metric, self._theta, self.outlook = wanted, metric, theta, ""
        self._items: dict[str, list[MatchSpec]] = {}
        number = 0
        for turn, item in enumerate(items):
            specs: list[MatchSpec] = []
            for repeat in range(1, repeats + 1):
                specs += series.matches(number + len(specs), item, item, repeat, turn)
            self._items[item] = specs
            number += len(specs)

    @property
    def opening(self) -> MatchSpec:
        return next(iter(self._items.values()))[0]

    def cautions(self) -> Sequence[str]:
        return ()

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done:
        known, names, asked = {block.name: block for block in finished}, list(self._items), 0
        while True:
            sure = sum(
                is_sure(known[name], self._items[name], self._metric, self._theta)
                for name in names[:asked]
            )
            self.outlook = f"{sure} of {self._wanted} items found, {asked} looked at"
            if sure >= self._wanted:
                return Done("plan_complete", f"{sure} items found in {asked}")
            if asked == len(names):
                return Done(
                    "items_exhausted",
                    f"{sure} items found in all {asked}, {self._wanted} were wanted",
                )
            batch = names[asked : asked + self._wanted - sure]
            if missing := [name for name in batch if name not in known]:
                return [spec for name in missing for spec in self._items[name]]
            asked += len(batch)


def is_sure(block: Block, specs: Sequence[MatchSpec], metric: str, theta: float) -> bool:
    """Whether every model's mean of a metric over its answers to an item exceeds theta; no answer
    is worth nothing."""
    given: dict[str, list[float]] = {}
    for spec in specs:
        for seat, alias in spec.seats.items():
            marks: Mapping[str, float | None] = block.scores[spec.number].get(seat, {})
            given.setdefault(alias, []).append(marks.get(metric) or 0.0)
    return all(fmean(values) > theta for values in given.values())
