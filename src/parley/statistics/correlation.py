"""Correlations of points, and of values after subtracting each item's mean. Unknown is None,
never 0."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from operator import mul
from statistics import NormalDist, fmean

import numpy as np

from parley.statistics.agreement import BlockEstimate, estimate_from_counts, pair_columns
from parley.statistics.block_draws import (
    Array,
    Blocks,
    Column,
    Counts,
    count_product_moment,
    count_rank_correlation,
    number_blocks,
    pair_rows,
)
from parley.statistics.intervals import ALPHA, UNKNOWN, Interval
from parley.statistics.score_table import mean_by_group
from parley.statistics.student_t import t_cdf

FEW = 8  # points, whose orders can all be counted


@dataclass(frozen=True)
class Correlation:
    """r over n independent points, its two-sided p and interval, and the number of incomplete
    points that were left out."""

    r: float | None
    p: float | None
    interval: Interval
    n: int
    dropped: int


def pearson(
    x: Sequence[float | None], y: Sequence[float | None], alpha: float = ALPHA
) -> Correlation:
    """Pearson's correlation. p comes from Student's t with n − 2 degrees of freedom, the interval
    from Fisher's z.

    Unknown with fewer than two points or if either side is constant. p needs three points; the
    interval needs four points and |r| < 1.
    """
    pairs = pair_columns(x, y)
    points = [pair for pair in pairs if pair is not None]
    return correlation_with_p_value(
        product_moment(points), len(points), pairs.count(None), 1.0, alpha
    )


def spearman(
    x: Sequence[float | None], y: Sequence[float | None], alpha: float = ALPHA
) -> Correlation:
    """Spearman's rank correlation; ties share their mean rank. The interval uses the variance of
    Bonett and Wright (2000).

    Unknown in the same cases as `pearson`. For few points, p is exact (over all permutations); for
    more points it is computed as in `pearson`.
    """
    pairs = pair_columns(x, y)
    points = [pair for pair in pairs if pair is not None]
    r = rank_correlation(points)
    found = correlation_with_p_value(
        r, len(points), pairs.count(None), 1.0 if r is None else 1 + r * r / 2, alpha
    )
    return (
        replace(found, p=permutation_p_value(points))
        if found.p is not None and len(points) <= FEW
        else found
    )


def permutation_p_value(points: Sequence[tuple[float, float]]) -> float:
    """The share of all permutations of one side whose rank correlation is at least as extreme as
    the observed one."""
    left, right = (mid_ranks([point[side] for point in points]) for side in (0, 1))
    middle = sum(left) * sum(right) / len(points)
    here = abs(sum(map(mul, left, right)) - middle)
    orders = [abs(sum(map(mul, left, order)) - middle) for order in permutations(right)]
    return fmean(each >= here - 1e-9 for each in orders)


def blocked_correlation(x: Column, y: Column, blocks: Blocks) -> BlockEstimate:
    """Pearson's correlation of rows, with an interval over blocks, because the rows of a block
    are not independent. Missing values are None, or NaN in an array."""
    rows, block = pair_rows(x, y, blocks)
    return estimate_from_counts(rows, block, count_product_moment, len(x) - len(rows))


def centred_correlation(x: Column, y: Column, blocks: Blocks) -> BlockEstimate:
    """The rank correlation of values after subtracting their block's mean, so that differences in
    item difficulty do not count; the interval is over blocks.

    A row that is alone in its block carries no information and is left out. Unknown if no row is
    left or if a side is constant in every block.
    """
    rows, block = pair_rows(x, y, blocks)
    several = np.bincount(block)[block] > 1
    rows, block = rows[several], number_blocks(block[several])
    centred = subtract_block_means(rows, block)
    return estimate_from_counts(centred, block, count_rank_correlation, len(x) - len(rows))


def subtract_block_means(rows: Array, block: Counts) -> Array:
    """Values minus their block's mean, rounded to steps of 2⁻⁴⁰ of the largest value of a column,
    so that rounding errors do not break ties."""
    if not len(rows):
        return rows
    largest = np.frexp(abs(rows).max(axis=0))[1]
    means = mean_by_group(rows[np.argsort(block, kind="stable")], np.bincount(block))
    found: Array = np.rint(np.ldexp(rows - means[block], 40 - largest))
    return found


def product_moment(points: Sequence[tuple[float, float]]) -> float | None:
    """r itself; None where either side is constant."""
    sides = []
    for side in (0, 1):
        values = [point[side] for point in points]
        reach = max(values) - min(values) if values else 0.0
        if not reach > 1e-12 * max(map(abs, values), default=0.0):
            return None
        mean = fmean(values)
        # of size one, as squares of very small numbers vanish
        sides.append([(value - mean) / reach for value in values])
    x, y = sides
    r = sum(map(mul, x, y)) / math.sqrt(sum(map(mul, x, x)) * sum(map(mul, y, y)))
    return math.copysign(1.0, r) if abs(r) > 1 - 1e-12 else r


def rank_correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """r of the ranks; None where either side is constant."""
    x, y = (mid_ranks([point[side] for point in points]) for side in (0, 1))
    return product_moment(list(zip(x, y, strict=True)))


def mid_ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; ties share their mean rank."""
    counts = Counter(values)
    rank, below = {}, 0
    for value in sorted(counts):
        rank[value] = below + (counts[value] + 1) / 2
        below += counts[value]
    return [rank[value] for value in values]


def correlation_with_p_value(
    r: float | None, n: int, dropped: int, spread: float, alpha: float
) -> Correlation:
    """r with its p and its interval, if n points are enough; the variance of Fisher's z is
    spread / (n − 3)."""
    if r is None:
        return Correlation(None, None, UNKNOWN, n, dropped)
    p = None
    if n > 2:
        p = 2 * t_cdf(-abs(r) * math.sqrt((n - 2) / (1 - r * r)), n - 2) if abs(r) < 1 else 0.0
    if n < 4 or abs(r) == 1:
        return Correlation(r, p, UNKNOWN, n, dropped)
    z, half = math.atanh(r), NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt(spread / (n - 3))
    return Correlation(
        r, p, Interval(math.tanh(z - half), math.tanh(z + half), "Fisher z"), n, dropped
    )
