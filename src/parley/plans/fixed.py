"""Fixed schedules: all matches are known before the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from parley.plans import Block, Done, MatchSpec
from parley.plans.blocks import BlockMaker
from parley.rules.task import Task


class FixedPlan:
    """Plays a given list of matches, whatever their results."""

    status_line = ""

    def __init__(self, specs: Sequence[MatchSpec]) -> None:
        self.specs = specs

    @property
    def first_match(self) -> MatchSpec:
        return self.specs[0]

    def cautions(self) -> Sequence[str]:
        return ()

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done:
        played = {number for block in finished for number in block.scores}
        return [spec for spec in self.specs if spec.number not in played] or Done("plan_complete")


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
    specs: list[MatchSpec] = []
    for turn, (repeat, item) in enumerate(product(range(1, repeats + 1), played_on)):
        specs += series.matches(
            len(specs), str(repeat) if item is None else item, item, repeat, turn
        )
    return FixedPlan(specs)
