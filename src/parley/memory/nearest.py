"""The nearest of many: exact, ties by order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parley.memory import Neighbour


def take_nearest(distances: NDArray[np.float64], k: int) -> list[Neighbour]:
    """The places of the k least distances, ties by order; what is infinitely far is not found."""
    if k < len(distances):
        near = np.flatnonzero(distances <= np.partition(distances, k - 1)[k - 1])
    else:
        near = np.arange(len(distances))
    near = near[distances[near] < np.inf]
    near = near[np.argsort(distances[near], kind="stable")][:k]
    return [
        Neighbour(place, distance)
        for place, distance in zip(near.tolist(), distances[near].tolist(), strict=True)
    ]
