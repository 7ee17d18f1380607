"""Results of a run: means over blocks with intervals, paired differences, rank intervals (DynaEval §A.5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev
from typing import NamedTuple

from parley.statistics.student import t_cdf, t_quantile

ALPHA = 0.05


class Observation(NamedTuple):
    """One seat's score; the block is the unit of independence."""

    block: str
    match: int
    alias: str
    role: str
    metric: str
    value: float | None


class Interval(NamedTuple):
    """Where the true mean lies, and by which method; unknown with fewer than two blocks."""

    low: float | None
    high: float | None
    kind: str | None


@dataclass(frozen=True)
class Cell:
    """One model's result in one role and metric (eq. 3 and 4)."""

    alias: str
    role: str
    metric: str
    mean: float | None
    interval: Interval
    sd: float | None
    blocks: int
    matches: int
    missing: int


@dataclass(frozen=True)
class Pair:
    """The difference of two models on the blocks that both played; p is Holm-adjusted within role and metric."""

    role: str
    metric: str
    a: str
    b: str
    difference: float
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True)
class Rank:
    """The places that a model may truly hold, given which differences are significant."""

    role: str
    metric: str
    alias: str
    low: int
    high: int


Key = tuple[str, str, str]  # metric, role, alias
Table = Mapping[Key, Mapping[str, float]]  # block means


def block_means(observations: Iterable[Observation]) -> dict[Key, dict[str, float]]:
    """Means by block. Seats of one match held by the same model are averaged within the match first."""
    matches: dict[Key, dict[str, dict[int, list[float]]]] = {}
    for block, match, alias, role, metric, value in observations:
        if value is not None:
            cell = matches.setdefault((metric, role, alias), {})
            cell.setdefault(block, {}).setdefault(match, []).append(value)
    return {
        key: {block: fmean(fmean(values) for values in by_match.values()) for block, by_match in blocks.items()}
        for key, blocks in matches.items()
    }


def interval(values: Sequence[float], bounds: tuple[float, float], alpha: float = ALPHA) -> Interval:
    """A block t interval; where the blocks do not differ at all, one made for bounded scores.

    With n equal blocks, anything that holds of more than p = 1 − (α/2)^(1/n) of all blocks would have shown;
    a share p of them may lie at either bound.
    """
    n = len(values)
    if n < 2:
        return Interval(None, None, None)
    mean, spread = fmean(values), stdev(values)
    low, high = bounds
    if spread < 1e-12 * max(1.0, abs(mean)):
        unseen = 1 - (alpha / 2) ** (1 / n)
        return Interval(mean - unseen * (mean - low), mean + unseen * (high - mean), "bounded")
    half = t_quantile(1 - alpha / 2, n - 1) * spread / math.sqrt(n)
    return Interval(max(low, mean - half), min(high, mean + half), "block t")


def cells(observations: Sequence[Observation], bounds: Mapping[str, tuple[float, float]]) -> list[Cell]:
    """Every model's result in every role and metric."""
    table = block_means(observations)
    seen: dict[Key, list[Observation]] = {}
    for observation in observations:
        seen.setdefault((observation.metric, observation.role, observation.alias), []).append(observation)
    found = []
    for (metric, role, alias), rows in seen.items():
        values = list(table.get((metric, role, alias), {}).values())
        found.append(
            Cell(
                alias=alias,
                role=role,
                metric=metric,
                mean=fmean(values) if values else None,
                interval=interval(values, bounds[metric]),
                sd=stdev(values) if len(values) > 1 else None,
                blocks=len(values),
                matches=len({row.match for row in rows}),
                missing=sum(row.value is None for row in rows),
            )
        )
    return found


def pairs(table: Table, bounds: Mapping[str, tuple[float, float]], alpha: float = ALPHA) -> list[Pair]:
    """All differences between models in the same role and metric, on shared blocks."""
    found: list[Pair] = []
    for metric, role in sorted({(metric, role) for metric, role, _ in table}):
        aliases = sorted(alias for m, r, alias in table if (m, r) == (metric, role))
        family = [difference(table, metric, role, a, b, bounds[metric], alpha) for a, b in combinations(aliases, 2)]
        found += holm([pair for pair in family if pair is not None])
    return found


def difference(table: Table, metric: str, role: str, a: str, b: str, bounds: tuple[float, float], alpha: float) -> Pair | None:
    """Two models compared on the blocks that both played; none if there are none."""
    ours, theirs = table[metric, role, a], table[metric, role, b]
    gaps = [ours[block] - theirs[block] for block in ours if block in theirs]
    if not gaps:
        return None
    width = bounds[1] - bounds[0]
    found = interval(gaps, (-width, width), alpha)
    p: float | None = None
    if found.kind == "block t":
        t = fmean(gaps) / (stdev(gaps) / math.sqrt(len(gaps)))
        p = 2 * t_cdf(-abs(t), len(gaps) - 1)
    elif found.kind == "bounded":
        mine, others = (interval([one[block] for block in ours if block in theirs], bounds, alpha / 2) for one in (ours, theirs))
        if mine.kind == others.kind == "block t":  # both vary, but always together: the signs of the gaps decide
            found = Interval(mine.low - others.high, mine.high - others.low, "block t")  # type: ignore[operator]
            p = 1.0 if abs(gaps[0]) < 1e-9 * max(1.0, width) else min(1.0, 2 * 0.5 ** len(gaps))
        else:  # the level at which the interval would just touch zero
            p = min(1.0, 2 * (width / (width + abs(gaps[0]))) ** len(gaps))
    return Pair(role, metric, a, b, fmean(gaps), found.low, found.high, p)


def holm(family: Sequence[Pair]) -> list[Pair]:
    """The same pairs with p adjusted for their number (Holm)."""
    known = sorted((pair for pair in family if pair.p is not None), key=lambda pair: pair.p or 0.0)
    adjusted: dict[int, float] = {}
    worst = 0.0
    for place, pair in enumerate(known):
        worst = max(worst, min(1.0, (len(known) - place) * (pair.p or 0.0)))
        adjusted[id(pair)] = worst
    return [Pair(p.role, p.metric, p.a, p.b, p.difference, p.low, p.high, adjusted.get(id(p))) for p in family]


def ranks(table: Table, differences: Sequence[Pair], lower_is_better: frozenset[str], alpha: float = ALPHA) -> list[Rank]:
    """From one plus the number of models that are surely better, to all less those surely worse."""
    found: list[Rank] = []
    for metric, role in sorted({(metric, role) for metric, role, _ in table}):
        aliases = sorted(alias for m, r, alias in table if (m, r) == (metric, role))
        better = dict.fromkeys(aliases, 0)
        worse = dict.fromkeys(aliases, 0)
        for pair in differences:
            if (pair.metric, pair.role) == (metric, role) and pair.p is not None and pair.p <= alpha:
                ahead = pair.difference > 0 if metric not in lower_is_better else pair.difference < 0
                winner, loser = (pair.a, pair.b) if ahead else (pair.b, pair.a)
                better[loser] += 1
                worse[winner] += 1
        found += [Rank(role, metric, alias, 1 + better[alias], len(aliases) - worse[alias]) for alias in aliases]
    return found
