"""Fixed schedules: which matches are played does not depend on any score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from parley.plans import Done, FinishedMatches, MatchSpec
from parley.plans.blocks import BlockMaker
from parley.plans.planned_matches import PlannedMatches
from parley.rules.task import Task


class FixedPlan:
    """Plays a given list of matches, whatever their results."""

    ahead = 0
    status_line = ""

    def __init__(self, specs: Sequence[MatchSpec]) -> None:
        self.specs = specs

    @property
    def first_match(self) -> MatchSpec:
        return self.specs[0]

    def cautions(self) -> Sequence[str]:
        return ()

    def matches(self, finished: FinishedMatches) -> Iterator[Sequence[MatchSpec] | Done]:
        if self.specs:
            yield self.specs
        yield Done("plan_complete")


def make_fixed_plan(
    name: str,
    task: Task,
    contestants: Sequence[str],
    instruments: Mapping[str, Sequence[str]],
    items: Sequence[str],
    repeats: int,
    seed: int,
    size: int | None = None,
    adversary: str | None = None,
) -> FixedPlan:
    """Play an arrangement on every item, `repeats` times."""
    series = BlockMaker(name, task, contestants, instruments, seed, size, adversary)
    played_on: Sequence[str | None] = items or [None]
    size = len(series.matches(0, "", None, 1, 0))

    def make(turn: int) -> list[MatchSpec]:
        before, place = divmod(turn, len(played_on))
        repeat, item = before + 1, played_on[place]
        block = str(repeat) if item is None else item
        return series.matches(turn * size, block, item, repeat, turn)

    return FixedPlan(PlannedMatches(repeats * len(played_on), size, make))
