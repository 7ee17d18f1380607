"""Models that lie below the line of the others, found without knowing which others to trust.

Least squares through all models bends towards the outlying ones and hides them, so the line that
sorts models is Siegel's repeated median (1982), which less than half of the points cannot carry
away. For every k up to a third of the models, the k lowest are a group; least squares through the
others says how far the nearest of the group lies from them, in studentised units. The same is done
with honest models, drawn at the same accuracies: the share of draws that show as much is p. Asking
for the nearest of a group is what finds two cheaters: that one honest model lies apart by chance is
common, that two do is rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parley.statistics.line_fit import LEVEL

Array = NDArray[np.float64]
DRAWS = 4999
SHARE = 3  # groups have at most one in so many models


class Outliers(NamedTuple):
    """By model, the chance that an honest one would lie as low; and the places of those set aside
    from the line."""

    p: list[float]
    aside: frozenset[int]


def find_outliers_below(
    x: Sequence[float], y: Sequence[float], errors: Sequence[float] | None, alpha: float
) -> Outliers | None:
    """Errors are the variances by measurement of the points' distances from the line; None where
    the others do not scatter.

    A model that is in no group has p = 1. At least four points whose x differ are wanted.
    """
    # so that the order of models does not matter
    order = sorted(range(len(x)), key=lambda i: (x[i], y[i]))
    accuracies, scores = (np.array([side[i] for i in order], dtype=float) for side in (x, y))
    size, reach = len(x) // SHARE, float(np.ptp(scores))
    own = None if errors is None or not reach else np.array([errors[i] for i in order]) / reach**2
    if own is not None and not own.any():
        own = None
    seen = find_lowest_groups(accuracies, scores[None] / (reach or 1.0), size, own)
    if seen.scatter[0] <= LEVEL**2 and own is None:
        return None
    chances, honest = group_p_values(seen, accuracies, size, own)
    p = (1 + (honest <= smallest_p_by_model(chances[None], seen.rank)).sum(axis=0)) / (DRAWS + 1)
    shared: dict[tuple[float, float], float] = {}
    # models at the same point are not told apart
    for i, chance in zip(order, p.tolist(), strict=True):
        shared[x[i], y[i]] = max(chance, shared.get((x[i], y[i]), 0.0))
    largest = max((k for k in range(1, size + 1) if chances[k - 1] * size <= alpha), default=0)
    aside = frozenset(i for i, place in zip(order, seen.rank[0], strict=True) if place < largest)
    return Outliers([shared[x[i], y[i]] for i in range(len(x))], aside)


class LowestGroups(NamedTuple):
    """By draw: the place of each model from below, and for every size of group how far its nearest
    model lies apart."""

    rank: NDArray[np.intp]
    nearest: Array
    scatter: Array  # around the line without the largest group


def find_lowest_groups(x: Array, y: Array, size: int, errors: Array | None) -> LowestGroups:
    """The k lowest by the repeated median line, for k = 1 to size, each against the least squares
    line of the others."""
    gaps = y - repeated_median_slopes(x, y)[:, None] * x
    rank = np.argsort(np.argsort(gaps, axis=1, kind="stable"), axis=1, kind="stable")
    nearest = np.empty((len(y), size))
    scatter = np.zeros(len(y))
    for k in range(1, size + 1):
        kept = (rank >= k).astype(float)
        n = len(x) - k
        dx = x - (kept @ x / n)[:, None]
        squares = (kept * dx**2).sum(axis=1)[:, None]
        lined = squares[:, 0] > (LEVEL * np.abs(x).max()) ** 2
        squares[~lined] = 1.0
        left = (
            y
            - ((kept * y).sum(axis=1) / n)[:, None]
            - dx * (kept * dx * y).sum(axis=1)[:, None] / squares
        )
        scatter = (kept * left**2).sum(axis=1) / (n - 2)
        variance = scatter[:, None]
        if errors is not None:
            extra = np.maximum(0.0, scatter - kept @ errors / n)
            variance = np.maximum(variance, extra[:, None] + errors)
        variance = np.maximum(variance, LEVEL**2)
        apart = left / np.sqrt(variance * (1 + 1 / n + dx**2 / squares))
        nearest[:, k - 1] = np.where(lined, np.where(kept > 0, -np.inf, apart).max(axis=1), np.inf)
    return LowestGroups(rank, nearest, scatter)


def repeated_median_slopes(x: Array, y: Array) -> Array:
    """Repeated medians: for each point the median slope to all others (that differ in x), and the
    median of those."""
    found = []
    for i in range(len(x)):
        others = np.abs(x - x[i]) > LEVEL * np.abs(x).max()
        if others.any():
            found.append(np.median((y[:, others] - y[:, [i]]) / (x[others] - x[i]), axis=1))
    return np.asarray(np.median(found, axis=0), dtype=float)


def repeated_median_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the repeated median line through points whose x differ."""
    return float(repeated_median_slopes(np.array(x, dtype=float), np.array([y], dtype=float))[0])


def group_p_values(
    seen: LowestGroups, x: Array, size: int, errors: Array | None
) -> tuple[Array, Array]:
    """The p of every group seen, and what honest models show at the same accuracies, always with
    the same draws.

    Without measurement errors nothing depends on the scale, so that any will do. With them, how
    much honest models scatter beyond their measurement is itself uncertain: each draw takes the
    scatter seen, divided by what draws of variance one show.
    """
    rng = np.random.default_rng(DRAWS)
    drawn = rng.standard_normal((DRAWS, len(x)))
    honest = find_lowest_groups(x, drawn, size, None)
    if errors is not None:
        kept = seen.rank[0] >= size
        extra = np.maximum(0.0, seen.scatter[0] / honest.scatter - errors[kept].mean())
        drawn = rng.standard_normal((DRAWS, len(x))) * np.sqrt(extra[:, None] + errors)
        honest = find_lowest_groups(x, drawn, size, errors)
    columns = np.sort(honest.nearest, axis=0)
    chances = np.array(
        [1 + np.searchsorted(columns[:, k], seen.nearest[0, k], "right") for k in range(size)]
    ) / (DRAWS + 1)
    theirs = (
        np.stack(
            [np.searchsorted(columns[:, k], honest.nearest[:, k], "right") for k in range(size)],
            axis=1,
        )
        / DRAWS
    )
    return chances, smallest_p_by_model(theirs, honest.rank)


def smallest_p_by_model(chances: Array, rank: NDArray[np.intp]) -> Array:
    """By model, the smallest p of the groups that it is in; 1 where it is in none."""
    size = chances.shape[1]
    smallest = np.minimum.accumulate(chances[:, ::-1], axis=1)[:, ::-1]
    smallest = np.concatenate([smallest, np.ones((len(chances), 1))], axis=1)
    return np.asarray(np.take_along_axis(smallest, np.minimum(rank, size), axis=1))
