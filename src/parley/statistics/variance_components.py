"""Variance components: how much of the variance of scores comes from items, from models on
items, and from single matches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from parley.errors import UsageError

Cell = tuple[str, str]  # role and model
Scores = Mapping[Cell, Mapping[str, Sequence[float]]]  # by block, one score a match
# of the variance of blocks: models whose scores vary less against each other are taken for
# independent
OPPOSED = 0.2


class Components(NamedTuple):
    """Standard deviations of the noise: a score is its model's mean + item + model × item +
    match."""

    item: float  # moves all models of a block alike
    model_item: float  # how a model's luck differs from item to item
    # what differs between matches of one model on one item: the dialogue, the partner, the judge
    match: float
    # whether some block holds several matches of a model; else the second is zero, and stands in
    # the third
    separable: bool
    # how many times the variance of a difference exceeds what these say, where one's gain is
    # another's loss
    opposed: float
    blocks: int


class Squares:
    """A sum of squares or products, and its degrees of freedom."""

    def __init__(self) -> None:
        self.sum, self.freedom = 0.0, 0

    def add(self, ours: Sequence[float], theirs: Sequence[float]) -> None:
        one, other = fmean(ours), fmean(theirs)
        self.sum += math.fsum((a - one) * (b - other) for a, b in zip(ours, theirs, strict=True))
        self.freedom += len(ours) - 1

    @property
    def mean(self) -> float:
        return self.sum / self.freedom if self.freedom else 0.0


def estimate_components(scores: Scores) -> Components:
    """Estimate the components by the method of moments, pooled over roles and models; blocks may be
    incomplete.

    - matches of a model within a block vary by match²;

    - block means of two models in one role covary by item²;

    - block means of one model vary by item² + model_item² + match² × (mean of 1 / matches).

    A negative estimate is set to zero.
    """
    means = {
        cell: {block: fmean(values) for block, values in blocks.items() if values}
        for cell, blocks in scores.items()
    }
    within, between, together = Squares(), Squares(), Squares()
    for cell, by_block in means.items():
        if by_block:
            between.add(list(by_block.values()), list(by_block.values()))
        for values in scores[cell].values():
            if values:
                within.add(values, values)
    for (one, ours), (other, theirs) in combinations(means.items(), 2):
        if one[0] == other[0] and (both := [block for block in ours if block in theirs]):
            together.add([ours[block] for block in both], [theirs[block] for block in both])
    if not between.freedom:
        raise UsageError(
            "the noise cannot be estimated, because no model has scores in at least two blocks"
        )
    share = fmean(
        1 / len(values) for blocks in scores.values() for values in blocks.values() if values
    )
    item = max(together.mean, 0.0)
    rest = max(between.mean - item, 0.0)
    match = within.mean if within.freedom else rest
    chance = max(OPPOSED, 2 / math.sqrt(together.freedom)) if together.freedom else 1.0
    return Components(
        item=math.sqrt(item),
        model_item=math.sqrt(max(rest - match * share, 0.0)) if within.freedom else 0.0,
        match=math.sqrt(match),
        separable=bool(within.freedom),
        opposed=1 - together.mean / between.mean if together.mean < -chance * between.mean else 1.0,
        blocks=len({block for by_block in means.values() for block in by_block}),
    )
