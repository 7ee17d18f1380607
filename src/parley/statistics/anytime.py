"""Results of runs with a stopping rule: intervals and comparisons that are valid at every look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np

from parley.statistics.confidence_sequences import Numbers, Sequences
from parley.statistics.duels import Duels
from parley.statistics.estimates import Key, PairedDifference, match_means
from parley.statistics.score_table import ScoreTable
from parley.statistics.stopping_rules import StabilityRule, WatchedCell

GRID = 400  # of differences, which are many
POINTS = 60  # of a path, at most


class Scale(NamedTuple):
    """The range of a metric's scores, and the half-width that is precise enough."""

    low: float
    high: float
    epsilon: float


@dataclass(frozen=True)
class PrecisionPoint:
    """One look at the results: the widths of the intervals at that time."""

    blocks: int
    matches: int
    half_widths: dict[tuple[str, str], float | None]  # by role and alias


@dataclass
class Anytime:
    """The anytime-valid results for one metric."""

    intervals: dict[Key, tuple[float, float] | None] = field(default_factory=dict)
    pairs: list[PairedDifference] = field(default_factory=list)
    # by role: pairs that are known to differ by less than the half-width
    equal: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    path: list[PrecisionPoint] = field(default_factory=list)


def compute_anytime(
    scores: ScoreTable,
    metric: str,
    scale: Scale,
    alpha: float,
    roles: int,
    repeats: Mapping[int, int],
    population: int | None = None,
) -> Anytime:
    """Intervals and their widths over time, jointly at level α; and comparisons, jointly at level
    α.

    Scores must be in the order of their matches, so that blocks are in the order in which they were
    played. `roles` is the number of scored roles over all metrics; α
    is shared among them. `repeats` gives the repeat of every match: matches of one repeat share
    what the task draws at random, and count as one.
    """
    matches: dict[str, set[int]] = {}
    for match, block in scores.rows[["match", "block"]].tolist():
        matches.setdefault(scores.blocks[block], set()).add(match)
    drawn = scores.select(scores.have_seats(lambda seat: seat.metric == metric))
    rows = drawn.rows.copy()
    rows["match"] = [repeats[match] for match in rows["match"].tolist()]
    means = match_means(replace(drawn, rows=rows))
    table = {(role, alias): by for (_, role, alias), by in means.items()}
    values = [{cell: by[block] for cell, by in table.items() if block in by} for block in matches]
    found = Anytime()
    known = sorted(table)
    if not known:
        return found
    watched = [
        WatchedCell(role, alias, metric, scale.low, scale.high, scale.epsilon)
        for role, alias in known
    ]
    own = len({role for role, _ in known}) / max(roles, 1)  # this metric's part of α
    stability = StabilityRule(watched, alpha * min(own, 1.0), population)
    played = 0
    looks = set(np.unique(np.linspace(1, len(values), POINTS).round().astype(int)).tolist())
    for name, block in zip(matches, values, strict=True):
        stability.add(block)
        played += len(matches[name])
        if stability.blocks in looks:
            widths = dict(zip(known, stability.half_widths, strict=True))
            found.path.append(PrecisionPoint(stability.blocks, played, widths))
    found.intervals = {
        (metric, role, alias): interval
        for (role, alias), interval in zip(known, stability.intervals, strict=True)
    }
    found.pairs, found.equal = compare_at_every_look(metric, values, known, scale, alpha, roles)
    return found


def compare_at_every_look(
    metric: str,
    blocks: Sequence[Mapping[tuple[str, str], Sequence[float]]],
    known: Sequence[tuple[str, str]],
    scale: Scale,
    alpha: float,
    families: int,
) -> tuple[list[PairedDifference], dict[str, frozenset[tuple[str, str]]]]:
    """All differences within a role, on the blocks that both models played; p is adjusted for
    all pairs and valid at every look. Beside them, the pairs that are known to differ by less than
    the half-width, at the same level."""
    roles, aliases = sorted({role for role, _ in known}), sorted({alias for _, alias in known})
    if len(aliases) < 2:
        return [], {}
    at = {(role, alias): (roles.index(role), aliases.index(alias)) for role, alias in known}
    families, width = max(families, len(roles)), scale.high - scale.low
    duels = Duels(len(roles), len(aliases), np.full(len(roles), scale.epsilon / width), alpha)
    first, second = np.array(list(combinations(range(len(aliases)), 2))).T
    gaps = Sequences(len(roles) * len(first), alpha / families / len(first), grid=GRID)
    total, count = np.zeros((len(roles), len(first))), np.zeros((len(roles), len(first)))
    for block in blocks:
        scores: Numbers = np.full((len(roles), len(aliases)), np.nan)
        for cell, values in block.items():
            scores[at[cell]] = (fmean(values) - scale.low) / width
        duels.add(scores)
        gap = scores[:, first] - scores[:, second]
        gaps.add(((gap + 1) / 2).ravel())
        seen = ~np.isnan(gap)
        total, count = total + np.where(seen, gap, 0), count + seen
    low, high = (((2 * end - 1) * width).reshape(total.shape) for end in gaps.intervals)
    p = np.minimum(1, duels.p() * families / len(roles))
    ahead = np.sign(duels.best[0] - duels.best[1])  # what was bet on with more success
    # blocks that contradict each other decide nothing
    p = np.where((ahead * total < 0) & (p <= alpha), np.nan, p)
    told = p <= alpha  # the bets on who is better are sharper: an end that they refute is no end
    low, high = (
        np.where(told & (total > 0), np.maximum(low, 0), low),
        np.where(told & (total < 0), np.minimum(high, 0), high),
    )
    level = duels.p_of_equality() * families / len(roles) <= alpha
    equal = {
        role: frozenset(
            (aliases[a], aliases[b])
            for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
            if level[r, k]
        )
        for r, role in enumerate(roles)
    }
    pairs = [
        PairedDifference(
            role,
            metric,
            aliases[a],
            aliases[b],
            float(total[r, k] / count[r, k]) * width,
            None if np.isnan(low[r, k]) else float(low[r, k]),
            None if np.isnan(high[r, k]) else float(high[r, k]),
            None if np.isnan(p[r, k]) else float(p[r, k]),
            int(count[r, k]),
        )
        for r, role in enumerate(roles)
        for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
        if count[r, k]
    ]
    return pairs, equal
