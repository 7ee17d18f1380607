"""Whether a judge prefers its own model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from parley.statistics.agreement import (
    BlockEstimate,
)
from parley.statistics.intervals import compute_interval


class Judgement(NamedTuple):
    """The score that a judge gave to a model in a block; None if the judgement could not be
    read."""

    block: str
    judge: str
    model: str
    value: float | None


def self_preference(
    judgements: Iterable[Judgement], judge: str, own: Mapping[str, str], bounds: tuple[float, float]
) -> BlockEstimate:
    """How much more a judge gives to its own model than other judges do, minus the same difference
    for other models, over blocks.

    Each comparison uses four judgements in one block: the judge and a second judge, on the judge's
    own model and another model. The second judge must own neither model, because its own preference
    would count as the first judge's. So with two judges that judge only each other's models nothing
    can be known. The result is also unknown for a judge that is not one of the models (`own`).
    """
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    dropped = 0
    for block, rater, model, value in judgements:
        if value is None:
            dropped += 1
        else:
            values.setdefault(block, {}).setdefault(rater, {}).setdefault(model, []).append(value)
    tables = [
        {
            rater: {model: fmean(many) for model, many in given.items()}
            for rater, given in values[block].items()
        }
        for block in sorted(values)
    ]
    width = 2 * (bounds[1] - bounds[0])
    return mean_over_blocks(
        [self_preference_differences(table, judge, own) for table in tables],
        (-width, width),
        dropped,
    )


def self_preference_differences(
    table: Mapping[str, Mapping[str, float]], judge: str, own: Mapping[str, str]
) -> list[float]:
    """The differences of differences in one block, for every second judge and other model that
    allow one."""
    mine, me = table.get(judge, {}), own.get(judge)
    if me is None or me not in mine:
        return []
    return [
        (mine[me] - theirs[me]) - (mine[model] - theirs[model])
        for rater, theirs in table.items()
        if rater != judge and me in theirs and own.get(rater) != me
        for model in mine
        if model in theirs and model not in (me, own.get(rater))
    ]


def mean_over_blocks(
    groups: Sequence[Sequence[float]], bounds: tuple[float, float], dropped: int
) -> BlockEstimate:
    """The mean over the blocks that have values, with its t interval; unknown if no block has a
    value."""
    means = [fmean(group) for group in groups if group]
    value = fmean(means) if means else None
    return BlockEstimate(
        value, compute_interval(means, bounds), sum(map(len, groups)), len(means), dropped
    )
