"""Exact nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from parley.memory import Neighbour

BLOCK = 512  # stored vectors that are compared together: 1.6 MB at a width of 384


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
    queries: NDArray[np.floating],
    stored: NDArray[np.floating],
    k: int,
    barred: Callable[[slice], NDArray[np.bool_] | None] = lambda rows: None,
) -> list[list[Neighbour]]:
    """For each query the k nearest stored vectors by L2, ties by order.

    Each distance is computed in float64 from its pair alone, and not by a product of matrices,
    whose rounding depends on their shapes, the library and its threads.
    """
    stored = stored.astype(np.float64)
    found = []
    for row, query in enumerate(queries.astype(np.float64)):
        distances = np.empty(len(stored))
        for start in range(0, len(stored), BLOCK):
            apart = stored[start : start + BLOCK] - query
            np.sqrt(np.square(apart, out=apart).sum(axis=1), out=distances[start : start + BLOCK])
        if (bars := barred(slice(row, row + 1))) is not None:
            distances[bars[0]] = np.inf
        found.append(take_nearest(distances, k))
    return found
