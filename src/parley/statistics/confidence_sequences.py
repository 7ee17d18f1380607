"""Confidence sequences by betting: intervals for a mean that stay valid however often you look
at them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
MOST = 0.5  # of its capital that a bet may lose


class Sequences:
    """One confidence sequence per cell, all updated together; scores lie in [0, 1].

    For every candidate mean, two gamblers bet against it: one that the scores are higher, one that
    they are lower (hedged capital, Waudby-Smith and Ramdas 2024). If the candidate is right,
    neither can expect to win, so a gambler who multiplies the stake by 2/α has refuted it. With a
    `population`, the scores are drawn without replacement from that many items, and the scores seen
    so far restrict the remaining ones.
    """

    def __init__(
        self, cells: int, alpha: float, population: int | None = None, grid: int = 1000
    ) -> None:
        self.cells, self.population = cells, population
        self.n = np.zeros(cells, dtype=np.int64)
        self.sum = np.zeros(cells)
        self.squares = np.full(cells, 0.25)
        self._stake = math.log(2 / alpha)
        self._half = 0.5 / grid
        # Candidates that still stand, cell after cell; each speaks for the stretch of one grid step
        # around it.
        self._cell = np.repeat(np.arange(cells), grid)
        self._mean = np.tile((np.arange(grid) + 0.5) / grid, cells)
        self._more = np.zeros(cells * grid)
        self._less = np.zeros(cells * grid)

    def add(self, scores: Numbers) -> None:
        """Add one block: a score for every cell, nan if it has none."""
        seen = ~np.isnan(scores)
        if not seen.any():
            return
        bet = np.sqrt(2 * self._stake / (self.squares * np.log(self.n + 2)))  # from the past only
        here = seen[self._cell]
        cell = self._cell[here]
        # A stretch is refuted only as a whole, so each gambler plays against the end that is harder
        # for it.
        high, low = (
            self._expected(self._mean[here] + self._half, cell),
            self._expected(self._mean[here] - self._half, cell),
        )
        high, low = np.clip(high, 1e-9, 1), np.clip(low, 0, 1 - 1e-9)
        score, most = np.clip(scores, 0, 1)[cell], bet[cell]
        self._more[here] += np.log1p(np.minimum(most, MOST / high) * (score - high))
        self._less[here] += np.log1p(np.minimum(most, MOST / (1 - low)) * (low - score))

        value = np.where(seen, np.clip(scores, 0, 1), 0.0)
        self.n += seen
        self.sum += value
        centre = (self.sum + 0.5) / (self.n + 1)
        self.squares += np.where(seen, (value - centre) ** 2, 0.0)
        self._strike(np.maximum(self._more, self._less) < self._stake)

    def _expected(self, mean: Numbers, cell: NDArray[np.int64]) -> Numbers:
        """The expected next score if the mean of the whole population is this candidate."""
        if self.population is None:
            return mean
        left = np.maximum(self.population - self.n[cell], 1)
        return np.asarray((self.population * mean - self.sum[cell]) / left)

    def _strike(self, stands: NDArray[np.bool_]) -> None:
        """Remove candidates that are refuted, and candidates that no remaining scores could make
        true."""
        if self.population is not None:
            rest = self.population - self.n[self._cell]
            lowest = self.population * (self._mean - self._half) - self.sum[self._cell]
            highest = self.population * (self._mean + self._half) - self.sum[self._cell]
            stands &= (lowest <= rest + 1e-6) & (highest >= -1e-6)
        if not stands.all():
            self._cell, self._mean = self._cell[stands], self._mean[stands]
            self._more, self._less = self._more[stands], self._less[stands]

    @property
    def intervals(self) -> tuple[Numbers, Numbers]:
        """The lowest and highest candidate of every cell; nan if no candidate is left, because
        the scores drifted."""
        first = np.searchsorted(self._cell, np.arange(self.cells), "left")
        last = np.searchsorted(self._cell, np.arange(self.cells), "right")
        low, high = np.full(self.cells, np.nan), np.full(self.cells, np.nan)
        some = last > first
        low[some] = self._mean[first[some]] - self._half
        high[some] = self._mean[last[some] - 1] + self._half
        return low, high
