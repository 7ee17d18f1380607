"""Find models that lie below the line of the others, without knowing which models to trust.

A least squares line through all models bends towards outliers and hides them. So models are sorted
by Siegel's repeated median line (1982), which resists any minority of outliers. For every k up to a
third of the models, the k lowest form a group. A least squares line through the other models shows
how far the nearest member of the group lies from it, in studentised units. The same is computed for
simulated honest models with the same accuracies; p is the share of simulations with at least the
same distance. Using the nearest member of a group finds two cheaters: one honest model often lies
apart by chance, but two rarely do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parley.statistics.line_fit import LEVEL

Array = NDArray[np.float64]
DRAWS = 4999
SHARE = 3  # a group has at most this fraction of the models: one in SHARE


class Outliers(NamedTuple):
    """For each model, the probability that an honest model lies as low; and the indices of the
    outliers that were removed from the line."""

    p: list[float]
    aside: frozenset[int]


def find_outliers_below(
    x: Sequence[float], y: Sequence[float], errors: Sequence[float] | None, alpha: float
) -> Outliers | None:
    """`errors` are the measurement variances of the points' distances from the line. None if the
    other models do not scatter.

    A model that is in no group has p = 1. At least four points with different x are needed.
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
    """For each draw: the rank of each model from below, and for every group size the distance of
    its nearest member."""

    rank: NDArray[np.intp]
    nearest: Array
    scatter: Array  # around the line without the largest group


def find_lowest_groups(x: Array, y: Array, size: int, errors: Array | None) -> LowestGroups:
    """The k lowest models by the repeated median line, for k = 1 to size, each group compared
    with the least squares line of the other models."""
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
    """The repeated median slope: for each point the median slope to all others with a different
    x, then the median of these."""
    found = []
    for i in range(len(x)):
        others = np.abs(x - x[i]) > LEVEL * np.abs(x).max()
        if others.any():
            found.append(np.median((y[:, others] - y[:, [i]]) / (x[others] - x[i]), axis=1))
    return np.asarray(np.median(found, axis=0), dtype=float)


def repeated_median_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The distances from the repeated median line through points with different x."""
    return float(repeated_median_slopes(np.array(x, dtype=float), np.array([y], dtype=float))[0])


def group_p_values(
    seen: LowestGroups, x: Array, size: int, errors: Array | None
) -> tuple[Array, Array]:
    """The p of every observed group, from simulated honest models with the same accuracies; the
    draws are always the same.

    Without measurement errors nothing depends on the scale, so any scale will do. With measurement
    errors, the scatter of honest models beyond their measurement is itself uncertain: each draw
    uses the observed scatter, divided by the scatter that draws of variance one show.
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
    """For each model, the smallest p of its groups; 1 if it is in no group."""
    size = chances.shape[1]
    smallest = np.minimum.accumulate(chances[:, ::-1], axis=1)[:, ::-1]
    smallest = np.concatenate([smallest, np.ones((len(chances), 1))], axis=1)
    return np.asarray(np.take_along_axis(smallest, np.minimum(rank, size), axis=1))
