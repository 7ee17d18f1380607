"""Agreement of raters beyond chance, with intervals over blocks. A figure that the ratings do
not determine is None, never 0."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random
from statistics import NormalDist
from typing import Literal, TypeVar

import numpy as np

from parley.errors import UsageError, unknown_name
from parley.statistics.block_draws import (
    Array,
    Blocks,
    CountedFigure,
    Counts,
    count_alpha,
    draw_block_counts,
    make_units,
    number_blocks,
)
from parley.statistics.intervals import ALPHA, UNKNOWN, Interval, compute_interval
from parley.statistics.student_t import t_quantile

A = TypeVar("A")
B = TypeVar("B")
Weights = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]

DRAWS = 2000
FEWEST = 5  # with fewer blocks there are too few different draws to tell a spread from
COST: Mapping[str, Callable[[int, int], float]] = {
    "none": lambda i, j: float(i != j),
    "linear": lambda i, j: abs(i - j),
    "quadratic": lambda i, j: (i - j) ** 2,
}
LEVELS = ("nominal", "ordinal", "interval")


@dataclass(frozen=True)
class BlockEstimate:
    """A figure (None if unknown), its interval, the numbers of rows and blocks that it is
    computed from, and the number of incomplete rows that were left out."""

    value: float | None
    interval: Interval
    n: int
    blocks: int
    dropped: int


def group_by_block(rows: Sequence[A | None], blocks: Sequence[str] | None) -> list[list[A]]:
    """The rows that are not None, grouped by block and ordered by the blocks' names; without
    names, all rows are one block."""
    found: dict[str, list[A]] = {}
    for row, block in zip(rows, [""] * len(rows) if blocks is None else blocks, strict=True):
        if row is not None:
            found.setdefault(block, []).append(row)
    return [found[block] for block in sorted(found)]


def pair_columns(first: Sequence[A | None], second: Sequence[B | None]) -> list[tuple[A, B] | None]:
    """Two columns as pairs; None where either is missing."""
    return [None if a is None or b is None else (a, b) for a, b in zip(first, second, strict=True)]


def block_bootstrap_interval(
    blocks: Sequence[A],
    figure: Callable[[Sequence[A]], float | None],
    bounds: tuple[float, float] = (-1.0, 1.0),
    alpha: float = ALPHA,
    seed: int = 0,
    value: float | None = None,
) -> Interval:
    """A bootstrap percentile interval: whole blocks are drawn with replacement. The same blocks and
    seed give the same interval. `value` is the figure of all blocks, if it is known."""
    n, rng = len(blocks), Random(seed)
    value = figure(blocks) if value is None and n >= FEWEST else value
    draws = (figure(rng.choices(blocks, k=n)) for _ in range(DRAWS))
    return percentile_interval(value, draws, n, bounds, alpha)


def percentile_interval(
    value: float | None,
    draws: Iterable[float | None],
    blocks: int,
    bounds: tuple[float, float] = (-1.0, 1.0),
    alpha: float = ALPHA,
) -> Interval:
    """The interval of a figure from its values in bootstrap samples.

    The percentiles are expanded for few blocks (Hesterberg 2015), because plain ones are too
    narrow. A draw for which the figure is unknown counts against both ends, so the interval is
    unknown if there are many such draws, and always below five blocks. If all draws are equal, all
    blocks must be equal, and the interval for equal bounded scores is used.
    """
    if blocks < FEWEST or value is None:
        return UNKNOWN
    found = sorted(draw for draw in draws if draw is not None)
    tail = NormalDist().cdf(
        -t_quantile(1 - alpha / 2, blocks - 1) * math.sqrt(blocks / (blocks - 1))
    )
    reach = int(tail * DRAWS) - (DRAWS - len(found))
    if reach < 0:
        return UNKNOWN
    low, high = min(value, found[reach]), max(value, found[-1 - reach])
    return (
        Interval(low, high, "block bootstrap")
        if high - low > 1e-12
        else compute_interval([value] * blocks, bounds, alpha)
    )


def estimate_over_blocks(
    groups: Sequence[Sequence[A]],
    figure: Callable[[Sequence[A]], float | None],
    dropped: int = 0,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> BlockEstimate:
    """A figure computed from rows, with an interval over their blocks."""

    def pooled(drawn: Sequence[Sequence[A]]) -> float | None:
        return figure(list(chain.from_iterable(drawn)))

    value = pooled(groups)
    return BlockEstimate(
        value,
        block_bootstrap_interval(groups, pooled, bounds, value=value),
        sum(map(len, groups)),
        len(groups),
        dropped,
    )


def estimate_from_counts(
    rows: Array,
    block: Counts,
    make_figure: Callable[[Array, Counts], CountedFigure],
    dropped: int,
) -> BlockEstimate:
    """The same for a figure that is computed from how often each block is drawn: faster, and for
    runs of any size."""
    if not len(rows):
        return BlockEstimate(None, UNKNOWN, 0, 0, dropped)
    n, blocks = len(rows), int(block.max()) + 1
    figure = make_figure(rows, block)
    value = figure(np.ones(blocks, dtype=np.int64))
    draws = map(figure, draw_block_counts(blocks, DRAWS, 0))
    return BlockEstimate(value, percentile_interval(value, draws, blocks), n, blocks, dropped)


def cohen_kappa(
    first: Sequence[Hashable | None],
    second: Sequence[Hashable | None],
    scale: Sequence[Hashable],
    weights: Weights = "quadratic",
    blocks: Sequence[str] | None = None,
) -> BlockEstimate:
    """Cohen's kappa of two raters (1960; weighted 1968). Disagreement is weighted by the distance
    on the scale.

    If one rater always gives the same rating, kappa is 0, because chance agrees as often. It is
    unknown without a complete pair, or if both raters always give the same single rating.
    """
    if weights not in COST:
        raise unknown_name("weights", weights, COST)
    place = {category: index for index, category in enumerate(scale)}
    for rating in chain(first, second):
        if rating is not None and rating not in place:
            raise UsageError(
                f"ratings must be on the scale {list(scale)}, not {rating!r}; use None for "
                "unreadable ratings"
            )
    pairs = pair_columns(
        [None if a is None else place[a] for a in first],
        [None if b is None else place[b] for b in second],
    )
    return estimate_over_blocks(
        group_by_block(pairs, blocks),
        partial(kappa_of_pairs, cost=COST[weights]),
        pairs.count(None),
    )


def kappa_of_pairs(
    pairs: Sequence[tuple[int, int]], cost: Callable[[int, int], float]
) -> float | None:
    """1 minus the cost of disagreement, relative to the cost that two raters with these
    frequencies would have by chance."""
    cells = Counter(pairs)
    rows, columns = Counter(i for i, _ in pairs), Counter(j for _, j in pairs)
    chance = sum(cost(i, j) * a * b for i, a in rows.items() for j, b in columns.items())
    if not chance:
        return None
    if len(rows) == 1 or len(columns) == 1:
        return 0.0
    return 1 - len(pairs) * sum(cost(i, j) * count for (i, j), count in cells.items()) / chance


def krippendorff_alpha(
    units: Sequence[Sequence[float | None]] | Array,
    level: Level = "ordinal",
    blocks: Blocks | None = None,
) -> BlockEstimate:
    """Krippendorff's alpha for any number of raters (Computing alpha-reliability, 2011). A unit is
    a row of ratings, some of which may be missing (None, or NaN in an array).

    The ordinal distance of two values is the distance of their mid-ranks. Units with fewer than
    two ratings are left out. Alpha is unknown if no unit is left or if all ratings are the same.
    One rater who always gives the same rating does not matter, because alpha estimates chance from
    the ratings of all raters.
    """
    if level not in LEVELS:
        raise unknown_name("level", level, LEVELS)
    rows = make_units(units)
    rated = np.count_nonzero(~np.isnan(rows), axis=1) > 1
    number = number_blocks([""] * len(rows) if blocks is None else blocks)
    figure = partial(count_alpha, level=level)
    return estimate_from_counts(
        rows[rated], number_blocks(number[rated]), figure, int(np.count_nonzero(~rated))
    )
