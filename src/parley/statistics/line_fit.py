"""Fit a straight line through points, and compute how far a further point lies from it,
including its own measurement error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from parley.statistics.student_t import t_quantile

LEVEL = 1e-9  # of the reach of the values: what differs by less does not differ


class Errors(NamedTuple):
    """Standard errors of a point's two means, and the covariance of the means if they come from
    the same questions."""

    x: float
    y: float
    together: float = 0.0

    def variance(self, slope: float) -> float:
        """The variance of the point's distance from a line that is due to measurement alone."""
        return max(0.0, self.y**2 + (slope * self.x) ** 2 - 2 * slope * self.together)


class MeasuredPoint(NamedTuple):
    """A point, and its measurement errors if they are known."""

    x: float
    y: float
    errors: Errors | None = None


class BandPoint(NamedTuple):
    """The prediction band at one x: where a further point of average precision is expected."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class FittedLine:
    """A least squares line through n points, their scatter around it, and the part of the
    scatter that measurement explains."""

    intercept: float
    slope: float
    n: int
    centre: float
    squares: float  # of x around the centre
    scatter: float  # variance around the line, n − 2 degrees of freedom
    # variance that measurement alone would give; zero where the errors are not known
    measured: float

    @property
    def freedom(self) -> int:
        return self.n - 2

    def at(self, x: float) -> float:
        return self.intercept + self.slope * x

    def variance(self, x: float, errors: Errors | None = None) -> float:
        """The variance of a further point around the line: the scatter of models plus the
        measurement error of the point, never less than the scatter of the other points.

        So few questions give a wide margin, whether all models have few or only this one.
        """
        own = max(0.0, self.scatter - self.measured) + (
            self.measured if errors is None else errors.variance(self.slope)
        )
        return max(self.scatter, own) * (1 + 1 / self.n + (x - self.centre) ** 2 / self.squares)

    def studentised(self, spot: MeasuredPoint) -> float | None:
        """The distance in standard errors of a point that was not used to fit the line; None if
        nothing scatters."""
        variance = self.variance(spot.x, spot.errors)
        return (spot.y - self.at(spot.x)) / math.sqrt(variance) if variance > 0 else None

    def band(self, low: float, high: float, alpha: float, steps: int = 40) -> list[BandPoint]:
        """The band from low to high, with a share α outside on either side."""
        reach, found = t_quantile(1 - alpha, self.freedom), []
        for x in (low + (high - low) * step / steps for step in range(steps + 1)):
            half = reach * math.sqrt(self.variance(x))
            found.append(BandPoint(x, self.at(x), self.at(x) - half, self.at(x) + half))
        return found


def fit_line(spots: Sequence[MeasuredPoint]) -> FittedLine | None:
    """Fit a line through at least three points with different x; None otherwise. Measurement
    errors are used only if they are known for all points."""
    if len(spots) < 3 or not has_spread([spot.x for spot in spots]):
        return None
    n, centre, level = len(spots), fmean(spot.x for spot in spots), fmean(spot.y for spot in spots)
    squares = math.fsum((spot.x - centre) ** 2 for spot in spots)
    slope = math.fsum((spot.x - centre) * (spot.y - level) for spot in spots) / squares
    gaps = [spot.y - level - slope * (spot.x - centre) for spot in spots]
    reach = max(abs(spot.y - level) for spot in spots)
    scatter = (
        math.fsum(gap**2 for gap in gaps) / (n - 2) if max(map(abs, gaps)) > LEVEL * reach else 0.0
    )
    known = [spot.errors.variance(slope) for spot in spots if spot.errors is not None]
    return FittedLine(
        level - slope * centre,
        slope,
        n,
        centre,
        squares,
        scatter,
        fmean(known) if len(known) == n else 0.0,
    )


def has_spread(values: Sequence[float]) -> bool:
    """Whether values differ by more than rounding."""
    return max(values) - min(values) > LEVEL * max(map(abs, values))
