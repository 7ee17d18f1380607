"""Exact nearest neighbours, computed in blocks of rows so that memory is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from parley.memory import Neighbour

BLOCK = 2**23  # scores that are looked at together: 32 MB
PAIRS = 2**18  # pairs of a query and a candidate that are ranked together
EXACT = 2**13  # pairs whose distances are computed together: 25 MB at a width of 384
GROUPS = 128  # of stored vectors; the smallest score of each screens a block
ROUNDING = 2.0**-24  # of float32
LARGEST = np.finfo(np.float32).max

Vectors: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]


def take_nearest(distances: NDArray[np.float64], k: int) -> list[Neighbour]:
    """The places of the k smallest distances, ties by order; infinite distances are left out."""
    if k < len(distances):
        near = np.flatnonzero(distances <= np.partition(distances, k - 1)[k - 1])
    else:
        near = np.arange(len(distances))
    near = near[distances[near] < np.inf]
    near = near[np.argsort(distances[near], kind="stable")][:k]
    return list(map(Neighbour, near.tolist(), distances[near].tolist()))


def find_nearest(
    queries: Vectors,
    stored: Vectors,
    k: int,
    barred: Callable[[slice], Flags | None] = lambda rows: None,
    twins: NDArray[np.int64] | None = None,
    block: int = BLOCK,
) -> list[list[Neighbour]]:
    """For each query the k nearest stored vectors by L2, ties by order.

    Products in float32 select candidates; their distances, and so their order, are computed in
    float64 from each pair alone. So the result depends neither on the block size nor on the library
    that multiplies matrices. `twins` gives equal stored vectors the same number, so that each
    distance is computed once.
    """
    if not len(stored):
        return [[] for _ in queries]
    twins = np.arange(len(stored)) if twins is None else twins
    squares = np.einsum("ij,ij->i", stored, stored, dtype=np.float64)
    # |s|² - 2 qs as one product: [-2q, 1] [s, |s|²]
    right = np.concatenate([stored, squares[:, None].astype(np.float32)], axis=1)
    lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
    # Twice the largest rounding error of a score, and half as much again.
    farthest = 2 * lengths * squares.max() ** 0.5 + squares.max()
    margins = 3 * (right.shape[1] + 1) * ROUNDING * farthest
    rows = max(1, block // len(stored))
    found: list[list[Neighbour]] = []
    for start in range(0, len(queries), rows):
        part = slice(start, min(start + rows, len(queries)))
        left = np.empty((part.stop - start, right.shape[1]), np.float32)
        np.multiply(queries[part], np.float32(-2), out=left[:, :-1])
        left[:, -1] = 1
        scores = left @ right.T
        if (bars := barred(part)) is not None:
            np.copyto(scores, np.inf, where=bars)
        near = screen_scores(scores, k, margins[part])
        for first, last in split_rows(near):
            chosen = queries[start + first : start + last]
            found += rank_pairs(chosen, stored, twins, near[first:last], k)
    return found


def screen_scores(scores: Vectors, k: int, margins: NDArray[np.float64]) -> Flags:
    """Which stored vectors may be among the k nearest of a row. The k-th smallest of the smallest
    scores of groups is never below the k-th smallest of all scores."""
    size = scores.shape[1]
    groups = max(GROUPS, 4 * k)
    if size >= 2 * groups:
        whole = size - size % groups
        least = scores[:, :whole].reshape(len(scores), -1, groups).min(axis=1)
        rest = scores[:, whole:]
        np.minimum(least[:, : rest.shape[1]], rest, out=least[:, : rest.shape[1]])
    else:
        least = scores
    if k < least.shape[1]:
        bounds = np.partition(least, k - 1, axis=1)[:, k - 1] + margins
    else:
        bounds = np.full(len(scores), np.inf)
    # what is infinitely far is barred
    near: Flags = scores <= np.minimum(bounds, LARGEST).astype(np.float32)[:, None]
    return near


def split_rows(near: Flags) -> Iterator[tuple[int, int]]:
    """Ranges of rows with at most PAIRS candidates together, or of one row."""
    totals = np.cumsum(np.count_nonzero(near, axis=1))
    first = before = 0
    while first < len(near):
        last = max(first + 1, int(np.searchsorted(totals, before + PAIRS, side="right")))
        yield first, last
        first, before = last, int(totals[last - 1])


def rank_pairs(
    queries: Vectors, stored: Vectors, twins: NDArray[np.int64], near: Flags, k: int
) -> list[list[Neighbour]]:
    """The k nearest of each row's candidates."""
    rows, places = np.divmod(np.flatnonzero(near), len(stored))
    distances = measure_pairs(queries, stored, rows, places, twins)
    order = np.lexsort((places, distances, rows))
    rows, places, distances = rows[order], places[order], distances[order]
    starts = np.searchsorted(rows, np.arange(len(queries) + 1))
    kept = np.flatnonzero(np.arange(len(rows)) - starts[rows] < k)
    found = list(map(Neighbour, places[kept].tolist(), distances[kept].tolist()))
    ends = np.cumsum(np.minimum(np.diff(starts), k)).tolist()
    return [found[first:last] for first, last in zip([0, *ends], ends, strict=False)]


def measure_pairs(
    queries: Vectors,
    stored: Vectors,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    twins: NDArray[np.int64],
) -> NDArray[np.float64]:
    """The L2 distances of pairs, each in float64 from the pair alone."""
    numbers = rows * (int(twins.max()) + 1) + twins[places]
    _, one, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    distances = np.empty(len(one))
    for start in range(0, len(one), EXACT):
        some = one[start : start + EXACT]
        apart = queries[rows[some]].astype(np.float64)
        apart -= stored[places[some]]
        distances[start : start + EXACT] = np.sqrt(np.square(apart, out=apart).sum(axis=1))
    return distances[inverse]
