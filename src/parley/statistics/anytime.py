"""Results of runs that stopped by what they saw: intervals and comparisons that hold at every look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean

import numpy as np

from parley.statistics.betting import Numbers, Sequences
from parley.statistics.duels import Duels
from parley.statistics.results import Key, Observation, Pair
from parley.statistics.stability import Stability, Watched

GRID = 400  # of differences, which are many
POINTS = 60  # of a path, at most


@dataclass(frozen=True)
class Scale:
    """What a metric's scores can be, how near is near enough, and which way is up."""

    low: float
    high: float
    epsilon: float
    upward: bool = True


@dataclass(frozen=True)
class Point:
    """One look: how wide the intervals still were."""

    blocks: int
    matches: int
    half_widths: dict[tuple[str, str], float | None]  # by role and alias


@dataclass
class Anytime:
    """What can be said of one metric, all of it together at level α."""

    intervals: dict[Key, tuple[float, float] | None] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    path: list[Point] = field(default_factory=list)


def anytime(
    observations: Sequence[Observation], metric: str, scale: Scale, alpha: float, cells: int, population: int | None = None
) -> Anytime:
    """Intervals, comparisons and the path to them; `cells` is the number of results that α is shared by.

    Observations come in the order of their matches, so blocks come as they were played.
    """
    blocks: dict[str, dict[tuple[str, str], dict[int, list[float]]]] = {}
    matches: dict[str, set[int]] = {}
    for row in observations:
        matches.setdefault(row.block, set()).add(row.match)
        here = blocks.setdefault(row.block, {})
        if row.metric == metric and row.value is not None:
            here.setdefault((row.role, row.alias), {}).setdefault(row.match, []).append(row.value)
    values = [{cell: [fmean(seats) for seats in by.values()] for cell, by in block.items()} for block in blocks.values()]
    found = Anytime()
    known = sorted({cell for block in values for cell in block})
    if not known:
        return found
    watched = [Watched(role, alias, metric, scale.low, scale.high, scale.epsilon) for role, alias in known]
    stability = Stability(watched, alpha * len(known) / max(cells, len(known)), population)
    played = 0
    looks = set(np.unique(np.linspace(1, len(values), POINTS).round().astype(int)).tolist())
    for name, block in zip(blocks, values, strict=True):
        stability.add(block)
        played += len(matches[name])
        if stability.blocks in looks:
            widths = dict(zip(known, stability.half_widths, strict=True))
            found.path.append(Point(stability.blocks, played, widths))
    found.intervals = {
        (metric, role, alias): interval for (role, alias), interval in zip(known, stability.intervals, strict=True)
    }
    found.pairs = compared(metric, values, known, scale, alpha, cells)
    return found


def compared(
    metric: str,
    blocks: Sequence[Mapping[tuple[str, str], Sequence[float]]],
    known: Sequence[tuple[str, str]],
    scale: Scale,
    alpha: float,
    cells: int,
) -> list[Pair]:
    """All differences within a role, on the blocks that both played; p is adjusted for all pairs, and valid at every look."""
    roles, aliases = sorted({role for role, _ in known}), sorted({alias for _, alias in known})
    if len(aliases) < 2:
        return []
    at = {(role, alias): (roles.index(role), aliases.index(alias)) for role, alias in known}
    families = max(len(roles), round(cells / len(aliases)))  # roles that α is shared by, those of other metrics too
    width, sign = scale.high - scale.low, 1 if scale.upward else -1
    duels = Duels(len(roles), len(aliases), np.full(len(roles), scale.epsilon / width), alpha)
    first, second = np.array(list(combinations(range(len(aliases)), 2))).T
    gaps = Sequences(len(roles) * len(first), alpha / families / len(first), grid=GRID)
    total, count = np.zeros((len(roles), len(first))), np.zeros((len(roles), len(first)))
    for block in blocks:
        scores: Numbers = np.full((len(roles), len(aliases)), np.nan)
        for cell, values in block.items():
            scores[at[cell]] = (fmean(values) - scale.low) / width
        duels.add(sign * scores)
        gap = scores[:, first] - scores[:, second]
        gaps.add(((gap + 1) / 2).ravel())
        seen = ~np.isnan(gap)
        total, count = total + np.where(seen, gap, 0), count + seen
    low, high = (((2 * end - 1) * width).reshape(total.shape) for end in gaps.intervals)
    p = np.minimum(1, duels.p() * families / len(roles))
    return [
        Pair(
            role,
            metric,
            aliases[a],
            aliases[b],
            float(total[r, k] / count[r, k]) * width,
            None if np.isnan(low[r, k]) else float(low[r, k]),
            None if np.isnan(high[r, k]) else float(high[r, k]),
            float(p[r, k]),
        )
        for r, role in enumerate(roles)
        for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
        if count[r, k]
    ]
