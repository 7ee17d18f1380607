"""Stopping rules: "run until the results have converged" (DynaEval §2.3) made precise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from parley.statistics.confidence_sequences import Numbers, Sequences
from parley.statistics.student_t import t_quantile

LEAST = 10  # blocks before anything is called stable


class WatchedCell(NamedTuple):
    """A result that has to become stable: one model in one role, by the metric that ranks the
    role."""

    role: str
    alias: str
    metric: str
    low: float
    high: float
    epsilon: float


class StabilityRule:
    """Intervals of all cells that are valid at every look, jointly at level α. The run is stable
    when all half-widths are small enough.

    With a `population`, the target is the mean over exactly these items. Items are then drawn
    without replacement, and the interval narrows as they are used up, down to the noise of playing
    each item only a few times: half of α goes to the sampling of items, half to that noise.
    """

    def __init__(
        self, cells: Sequence[WatchedCell], alpha: float, population: int | None = None
    ) -> None:
        self.cells, self.population = list(cells), population
        self._share = alpha / len(self.cells) / (1 if population is None else 2)
        self._sequences = Sequences(len(self.cells), self._share, population)
        self._low = np.array([cell.low for cell in self.cells], dtype=np.float64)
        self._width = np.array([cell.high - cell.low for cell in self.cells], dtype=np.float64)
        # variances of block means within their blocks, added up
        self._noise = np.zeros(len(self.cells))
        self._noisy = np.zeros(len(self.cells))  # how many blocks have several repeats
        self._repeats = np.zeros(len(self.cells))
        # blocks whose repeats all ended at one end of the scale
        self._at_end = np.zeros(len(self.cells))
        self.blocks = 0

    def add(self, block: Mapping[tuple[str, str], Sequence[float]]) -> None:
        """Add one block: for each role and alias, the score of every repeat (or of every match,
        if each has its own seed)."""
        self.blocks += 1
        means = np.full(len(self.cells), np.nan)
        for at, cell in enumerate(self.cells):
            scores = [
                (score - cell.low) / self._width[at]
                for score in block.get((cell.role, cell.alias), ())
            ]
            if scores:
                means[at] = mean = math.fsum(scores) / len(scores)
                self._repeats[at] += len(scores)
                self._at_end[at] += mean <= 0 or mean >= 1
            if len(scores) > 1:
                self._noise[at] += (
                    math.fsum((score - mean) ** 2 for score in scores)
                    / (len(scores) - 1)
                    / len(scores)
                )
                self._noisy[at] += 1
        self._sequences.add(means)

    @property
    def intervals(self) -> list[tuple[float, float] | None]:
        """The interval of each mean; None if its blocks contradict each other."""
        low, high = self._sequences.intervals
        if self.population is not None:
            low, high = self._widened(low, -1), self._widened(high, 1)
        return [
            None
            if math.isnan(least)
            else (cell.low + width * float(least), cell.low + width * float(most))
            for cell, width, least, most in zip(
                self.cells, self._width.tolist(), low, high, strict=True
            )
        ]

    def _widened(self, ends: Numbers, side: int) -> Numbers:
        """Widen the interval by the noise within these items, that is, by how much their scores may
        change if they are played once more.

        This is a score interval like Wilson's (1927) with Student's t: the noise of a mean m is
        proportional to m (1 − m). So it is also valid if nearly all matches end at one end of the
        scale, where hardly any noise is visible.
        """
        assert self.population is not None
        known, moved = self._sequences, ends.copy()
        for at, n in enumerate(known.n.tolist()):
            if n < 2:
                moved[at] = (1 + side) / 2
            elif not math.isnan(ends[at]):
                reach = (
                    t_quantile(1 - self._share / 2, n - 1) ** 2
                    * self._noise_share(at, n)
                    / self.population
                )
                place = float(ends[at])
                centre, half = (
                    place + reach / 2,
                    math.sqrt(place * (1 - place) * reach + reach**2 / 4),
                )
                moved[at] = min(1.0, max(0.0, (centre + side * half) / (1 + reach)))
        return moved

    def _noise_share(self, at: int, n: int) -> float:
        """The variance of a block's mean within its item, relative to the largest variance that a
        score from 0 to 1 can have.

        If blocks are played once, noise and item differences cannot be separated, and the whole
        spread counts as noise. Blocks at an end of the scale show little noise; their share counts
        as part of one more block with the largest possible variance.
        """
        mean, repeats = float(self._sequences.sum[at]) / n, float(self._repeats[at]) / n
        most = mean * (1 - mean)
        if most <= 0:
            return 1 / repeats
        several = self._noisy[at] == n
        seen = (
            self._noise[at]
            if several
            else (float(self._sequences.squares[at]) - 0.25) * n / (n - 1)
        )
        extra = (self._at_end[at] + 1) / (n + 1)
        return float((seen + extra * most / repeats) / (n + extra) / most)

    @property
    def half_widths(self) -> list[float | None]:
        return [None if found is None else (found[1] - found[0]) / 2 for found in self.intervals]

    @property
    def status(self) -> Literal["converged", "drift"] | None:
        """Whether the run can stop: its results are stable, or contradict each other.

        An interval contains the values that no look has refuted. If scores drift, it may shrink to
        a narrow range beside the mean before it becomes empty. Such an interval is narrow, but not
        a result.
        """
        found = self.intervals
        if any(interval is None for interval in found):
            return "drift"
        if int(self._sequences.n.min()) < LEAST:
            return None
        means = self._low + self._width * self._sequences.sum / self._sequences.n
        for cell, interval, mean in zip(self.cells, found, means.tolist(), strict=True):
            assert interval is not None
            low, high = interval
            if high - low > 2 * cell.epsilon or not low <= mean <= high:
                return None
        return "converged"

    def unseen(self) -> list[WatchedCell]:
        """Cells without a score in any block."""
        return [
            cell for cell, n in zip(self.cells, self._sequences.n.tolist(), strict=True) if not n
        ]

    def widest(self) -> tuple[WatchedCell, float] | None:
        """The cell that is farthest from its target, and its half-width."""
        known = [
            (width / cell.epsilon, cell, width)
            for cell, width in zip(self.cells, self.half_widths, strict=True)
            if width
        ]
        return max(known)[1:] if known else None


class BlockForecast(NamedTuple):
    """The number of blocks that a half-width needs (None if it is more than the limit), and the
    half-width after the last of them."""

    blocks: int | None
    half_width: float


def forecast_blocks(
    cell: WatchedCell, spread: float, alpha: float, most: int, population: int | None = None
) -> BlockForecast:
    """A forecast for a cell whose blocks have this standard deviation, at level α, within `most`
    blocks."""
    stability = StabilityRule([cell], alpha, population)
    middle, spread = (cell.low + cell.high) / 2, min(spread, (cell.high - cell.low) / 2)
    for block in range(1, min(most, population or most) + 1):
        stability.add({(cell.role, cell.alias): [middle + (spread if block % 2 else -spread)]})
        if stability.status == "converged":
            return BlockForecast(block, stability.half_widths[0] or 0.0)
    return BlockForecast(None, stability.half_widths[0] or math.inf)


def count_fixed_blocks(half_width: float, spread: float, alpha: float, most: int) -> int | None:
    """The number of blocks that Student's t needs for a half-width if the number is fixed in
    advance and blocks have this standard deviation; None if it is more than `most`."""

    def is_enough(n: int) -> bool:
        return t_quantile(1 - alpha / 2, n - 1) * spread <= half_width * math.sqrt(n)

    if most < 2 or not is_enough(most):
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
