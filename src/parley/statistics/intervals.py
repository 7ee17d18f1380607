"""Confidence intervals for a mean: Student's t over blocks, an interval for scores near a bound
of their range, and a bootstrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from random import Random
from statistics import fmean
from typing import NamedTuple

from parley.errors import unknown_name
from parley.statistics.student_t import t_cdf, t_quantile

ALPHA = 0.05
NEAR = 4  # half-widths of the 95% t interval: a bound that is nearer to the mean than this skews it
DRAWS = 1999  # of the bootstrap
METHODS = ("block", "bootstrap")


class Interval(NamedTuple):
    """The interval of the true mean and its method; unknown with fewer than two blocks."""

    low: float | None
    high: float | None
    kind: str | None


UNKNOWN = Interval(None, None, None)


def compute_interval(
    values: Sequence[float],
    bounds: tuple[float, float],
    alpha: float = ALPHA,
    method: str = "block",
    weights: Sequence[int] = (),
) -> Interval:
    """A t interval over blocks. Near a bound of the range, or if all blocks are equal, an
    interval for bounded scores is used instead. `weights` are the numbers of identical blocks
    behind each value; they count in the mean, but do not narrow the interval."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if len(values) < 2:
        return Interval(None, None, None)
    blocks = Blocks(values, bounds, weights)
    if is_constant(values, bounds):
        return equal_blocks_interval(blocks, alpha)
    usual = wilson_interval(blocks, alpha) if blocks.near else student_interval(blocks, alpha)
    return usual if method == "block" else bootstrap_t_interval(blocks, alpha) or usual


def p_value_of_point(
    values: Sequence[float],
    bounds: tuple[float, float],
    point: float,
    weights: Sequence[int] = (),
) -> float | None:
    """The two-sided p of a point between the bounds: the α at which the interval of these blocks
    would just reach it."""
    if len(values) < 2:
        return None
    blocks = Blocks(values, bounds, weights)
    n, mean, (low, high) = blocks.n, blocks.mean, bounds
    if is_constant(values, bounds):
        end = low if point < mean else high
        return 1.0 if end == mean else min(1.0, 2 * ((end - point) / (end - mean)) ** n)
    if blocks.near:
        place = (point - low) / (high - low)
        t = (blocks.place - place) * math.sqrt(blocks.worth / (place * (1 - place)))
    else:
        t = (mean - point) / blocks.error
    return 2 * t_cdf(-abs(t), n - 1)


def is_constant(values: Sequence[float], bounds: tuple[float, float]) -> bool:
    """Whether all blocks are equal, except for rounding."""
    return max(values) - min(values) < 1e-12 * max(1.0, abs(bounds[0]), abs(bounds[1]))


def is_student_apt(
    values: Sequence[float], bounds: tuple[float, float], weights: Sequence[int] = ()
) -> bool:
    """Whether Student's t is valid for these blocks: they differ, and no bound is near."""
    if len(values) < 2 or is_constant(values, bounds):
        return False
    return not Blocks(values, bounds, weights).near


def standard_deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample of two or more. `statistics.stdev` computes with fractions
    and takes seconds for a large run."""
    if min(values) == max(values):
        return 0.0
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


class Blocks:
    """The means of two or more different blocks, how often each was played, and their position
    in the range."""

    def __init__(
        self, values: Sequence[float], bounds: tuple[float, float], weights: Sequence[int] = ()
    ) -> None:
        self.values, self.bounds, self.n = values, bounds, len(values)
        self.mean, self.spread = fmean(values, weights or None), standard_deviation(values)
        self.size = sum(weights) ** 2 / sum(each**2 for each in weights) if weights else self.n

    @property
    def error(self) -> float:
        """The standard error of the weighted mean of n independent values (Kish 1965); `size` is
        n if all weights are equal, and less otherwise."""
        return self.spread / math.sqrt(self.size)

    @property
    def near(self) -> bool:
        """Whether a bound is so near that the distribution of the mean must be skewed; the
        answer is the same at every level."""
        room = min(self.mean - self.bounds[0], self.bounds[1] - self.mean)
        return room < NEAR * t_quantile(1 - ALPHA / 2, self.n - 1) * self.error

    @cached_property
    def place(self) -> float:
        """The mean on a scale from 0 to 1."""
        return (self.mean - self.bounds[0]) / (self.bounds[1] - self.bounds[0])

    @property
    def worth(self) -> float:
        """The effective number of blocks that each score either 0 or 1, by the variance of these
        blocks.

        Blocks on a bound do not show how others vary. So a share of one more block, as large as
        theirs (counting one block that was not seen yet), is assumed to have the largest possible
        variance.
        """
        low, high = self.bounds
        most = self.place * (1 - self.place)
        extra = (1 + sum(value <= low or value >= high for value in self.values)) / (1 + self.n)
        squares = (self.n - 1) * (self.spread / (high - low)) ** 2
        return self.size * (self.n - 1 + extra) * most / (squares + extra * most)


def student_interval(blocks: Blocks, alpha: float) -> Interval:
    """Student's t over blocks."""
    half = t_quantile(1 - alpha / 2, blocks.n - 1) * blocks.error
    return Interval(
        max(blocks.bounds[0], blocks.mean - half),
        min(blocks.bounds[1], blocks.mean + half),
        "block t",
    )


def wilson_interval(blocks: Blocks, alpha: float) -> Interval:
    """Wilson's score interval (1927) with Student's t, for the effective number of 0/1 blocks."""
    low, high = blocks.bounds
    place, reach = blocks.place, t_quantile(1 - alpha / 2, blocks.n - 1) ** 2 / blocks.worth
    centre = (place + reach / 2) / (1 + reach)
    half = math.sqrt(place * (1 - place) * reach + reach**2 / 4) / (1 + reach)
    return Interval(
        max(low, low + (centre - half) * (high - low)),
        min(high, low + (centre + half) * (high - low)),
        "bounded",
    )


def equal_blocks_interval(blocks: Blocks, alpha: float) -> Interval:
    """The interval for n equal blocks: a property of more than a share p = 1 − (α/2)^(1/n) of
    all blocks would have been seen; the remaining share may lie at a bound."""
    share = 1 - (alpha / 2) ** (1 / blocks.n)
    below, above = blocks.mean - blocks.bounds[0], blocks.bounds[1] - blocks.mean
    return Interval(blocks.mean - share * below, blocks.mean + share * above, "bounded")


def bootstrap_t_interval(blocks: Blocks, alpha: float) -> Interval | None:
    """Bootstrap-t over blocks (Efron & Tibshirani 1993, §12.5), always with the same draws.

    If so few blocks differ that many draws have no variance, the bootstrap is not used and the
    interval is the same as without it.
    """
    n, centre, rng = blocks.n, fmean(blocks.values), Random(DRAWS)
    centred = sorted(value - centre for value in blocks.values)
    found = []
    for _ in range(DRAWS):
        drawn = rng.choices(centred, k=n)
        shift = sum(drawn) / n
        if min(drawn) == max(drawn):  # no variance to divide by
            found.append(math.copysign(math.inf, shift))
        else:
            found.append(
                shift / math.sqrt(sum((value - shift) ** 2 for value in drawn) / (n * (n - 1)))
            )
    found.sort()
    rank = max(1, int((DRAWS + 1) * alpha / 2))
    if math.isinf(found[rank - 1]) or math.isinf(found[-rank]):
        return None
    low, high = (
        blocks.mean - found[-rank] * blocks.error,
        blocks.mean - found[rank - 1] * blocks.error,
    )
    return Interval(max(blocks.bounds[0], low), min(blocks.bounds[1], high), "bootstrap")
