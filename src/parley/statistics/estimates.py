"""The results of a run: means over blocks with intervals, paired differences and rank intervals
(DynaEval §A.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from operator import sub
from statistics import fmean
from typing import NamedTuple

import numpy as np

from parley.statistics.intervals import (
    ALPHA,
    Interval,
    compute_interval,
    is_constant,
    is_student_apt,
    p_value_of_point,
    standard_deviation,
)
from parley.statistics.multiple_comparisons import holm
from parley.statistics.score_table import (
    NO_VALUE,
    Numbers,
    ScoreTable,
    Values,
    find_starts,
    mean_by_group,
)

BOTH_TESTS = 11  # blocks from which on the sign test stands beside Student's t


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
class PairedDifference:
    """The difference between two models on the blocks that both played; p is Holm-corrected
    within role and metric."""

    role: str
    metric: str
    a: str
    b: str
    difference: float
    low: float | None
    high: float | None
    p: float | None
    blocks: int = 0


@dataclass(frozen=True)
class Rank:
    """The ranks that a model may truly have, given which differences are significant."""

    role: str
    metric: str
    alias: str
    low: int
    high: int


Key = tuple[str, str, str]  # metric, role, alias
Table = Mapping[Key, Mapping[str, float]]  # block means
Same = Mapping[str, str]  # by block, the first one that is identical; empty: all differ
ALL_DIFFER: Same = {}


class MatchMeans(NamedTuple):
    """The mean score of each cell in each match, by cell and block; NaN if it has no value."""

    keys: list[Key]
    cell: Numbers  # the place in `keys`
    block: Numbers
    value: Values
    missing: Numbers  # by cell: scores without a value


class CellTally(NamedTuple):
    """What one cell is computed from."""

    means: dict[str, float]  # by block
    matches: int  # also those without a score
    missing: int  # scores without a value


def average_matches(scores: ScoreTable) -> MatchMeans:
    """If a model holds several seats of a match, the mean of their scores counts."""
    keys: dict[Key, int] = {}
    cells = [
        keys.setdefault((metric, role, alias), len(keys))
        for alias, role, metric, *_ in scores.seats
    ]
    rows = scores.rows
    cell = np.array(cells, dtype=np.int64)[rows["seat"]]
    order = np.lexsort((rows["match"], rows["block"], cell))
    rows, cell = rows[order], cell[order]
    value = rows["value"]
    known = ~np.isnan(value)
    starts = find_starts(cell, rows["block"], rows["match"])
    # numbers of known values, of which none is where a mean is missing
    counts = np.add.reduceat(known.astype(np.int64), starts) if len(starts) else starts
    means = np.full(len(starts), NO_VALUE)
    means[counts > 0] = mean_by_group(value[known], counts[counts > 0])
    missing = np.bincount(cell[~known], minlength=len(keys))
    return MatchMeans(list(keys), cell[starts], rows["block"][starts], means, missing)


def match_means(scores: ScoreTable) -> dict[Key, dict[str, list[float]]]:
    """For each block, the score of every match that has one."""
    keys, *columns, _ = average_matches(scores)
    found: dict[Key, dict[str, list[float]]] = {}
    for cell, block, value in zip(*(column.tolist() for column in columns), strict=True):
        if value == value:
            by_block = found.setdefault(keys[cell], {})
            by_block.setdefault(scores.blocks[block], []).append(value)
    return found


def block_means(scores: ScoreTable) -> dict[Key, dict[str, float]]:
    """The mean of each block; intervals are computed over these means."""
    return means_of_cells(tally_cells(scores))


def means_of_cells(tallies: Mapping[Key, CellTally]) -> dict[Key, dict[str, float]]:
    """The block means of the cells that have any."""
    return {key: tally.means for key, tally in tallies.items() if tally.means}


def tally_cells(scores: ScoreTable) -> dict[Key, CellTally]:
    """The block means and counts of every model in every role and metric."""
    keys, cell, block, value, missing = average_matches(scores)
    counts = np.bincount(cell, minlength=len(keys)).tolist()
    known = ~np.isnan(value)
    cell, block, value = cell[known], block[known], value[known]
    starts = find_starts(cell, block)
    means = mean_by_group(value, np.diff(starts, append=len(value))).tolist()
    names = [scores.blocks[at] for at in block[starts].tolist()]
    ends = cell[starts].searchsorted(np.arange(len(keys) + 1)).tolist()
    return {
        key: CellTally(dict(zip(names[start:end], means[start:end], strict=True)), matches, gone)
        for key, (start, end), matches, gone in zip(
            keys, pairwise(ends), counts, missing.tolist(), strict=True
        )
        if matches
    }


def merge_blocks(means: Mapping[str, float], same: Same) -> tuple[Sequence[float], list[int]]:
    """The means of distinct blocks, and the number of identical blocks behind each; no weights
    if all blocks differ."""
    if not same:
        return list(means.values()), []
    groups: dict[str, list[float]] = {}
    for block, mean in means.items():
        groups.setdefault(same[block], []).append(mean)
    return list(map(fmean, groups.values())), list(map(len, groups.values()))


def share_blocks(
    ours: Mapping[str, float], theirs: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """The means of both sides on the blocks that both have, in the order of ours."""
    shared = [block for block in ours if block in theirs]
    return {block: ours[block] for block in shared}, {block: theirs[block] for block in shared}


def compute_cells(
    tallies: Mapping[Key, CellTally],
    bounds: Mapping[str, tuple[float, float]],
    method: str = "block",
    same: Same = ALL_DIFFER,
) -> list[Cell]:
    """The result of every model in every role and metric. Means are over all blocks; for the
    interval, identical blocks are one observation."""
    found = []
    for (metric, role, alias), (means, matches, missing) in tallies.items():
        values, weights = merge_blocks(means, same)
        found.append(
            Cell(
                alias=alias,
                role=role,
                metric=metric,
                mean=fmean(means.values()) if means else None,
                interval=compute_interval(values, bounds[metric], method=method, weights=weights),
                sd=standard_deviation(values) if len(values) > 1 else None,
                blocks=len(values),
                matches=matches,
                missing=missing,
            )
        )
    return found


def compare_models(
    table: Table,
    bounds: Mapping[str, tuple[float, float]],
    alpha: float = ALPHA,
    method: str = "block",
    same: Same = ALL_DIFFER,
) -> list[PairedDifference]:
    """All differences between models in the same role and metric, on shared blocks; for
    intervals and p, identical blocks are one observation."""
    found: list[PairedDifference] = []
    for metric, role in sorted({(metric, role) for metric, role, _ in table}):
        aliases = sorted(alias for m, r, alias in table if (m, r) == (metric, role))
        family = [
            compare_two_models(table, metric, role, a, b, bounds[metric], alpha, method, same)
            for a, b in combinations(aliases, 2)
        ]
        found += adjust_for_pairs([pair for pair in family if pair is not None])
    return found


def compare_two_models(
    table: Table,
    metric: str,
    role: str,
    a: str,
    b: str,
    bounds: tuple[float, float],
    alpha: float,
    method: str,
    same: Same = ALL_DIFFER,
) -> PairedDifference | None:
    """Compare two models on the blocks that both played; None if there are none."""
    ours, theirs = share_blocks(table[metric, role, a], table[metric, role, b])
    if not ours:
        return None
    (mine, weights), (others, _) = merge_blocks(ours, same), merge_blocks(theirs, same)
    gaps = list(map(sub, mine, others))
    width = bounds[1] - bounds[0]
    both_ways = (-width, width)
    found, p = (
        compute_interval(gaps, both_ways, alpha, method, weights),
        p_value_of_point(gaps, both_ways, 0.0, weights),
    )
    if (
        is_constant(gaps, bounds)
        and not is_constant(mine, bounds)
        and not is_constant(others, bounds)
    ):
        # Both vary, but always together: their own intervals say where the difference may lie.
        one, other = (
            compute_interval(mine, bounds, alpha / 2, weights=weights),
            compute_interval(others, bounds, alpha / 2, weights=weights),
        )
        found = Interval(one.low - other.high, one.high - other.low, one.kind)  # type: ignore[operator]
        p = 1.0
    if p is not None and is_sign_test_apt(gaps, both_ways, weights):
        p = min(p, 2 * 0.5 ** len(gaps))
        if p <= alpha and found.low is not None and found.high is not None:
            # an end that the signs refute
            low, high = (
                (max(found.low, 0.0), found.high)
                if gaps[0] > 0
                else (found.low, min(found.high, 0.0))
            )
            found = Interval(low, high, found.kind)
    difference = fmean(gaps, weights or None)
    return PairedDifference(role, metric, a, b, difference, found.low, found.high, p, len(gaps))


def is_sign_test_apt(
    gaps: Sequence[float], bounds: tuple[float, float], weights: Sequence[int] = ()
) -> bool:
    """Whether the exact sign test may decide. All differences must have the same sign. In
    addition, Student's t must not apply, or there must be so many blocks that using both tests
    adds almost no false alarms (with 7 blocks it would add up to 1.6% for three models)."""
    least = 1e-9 * max(1.0, bounds[1])
    if not (min(gaps) > least or max(gaps) < -least):
        return False
    return len(gaps) >= BOTH_TESTS or not is_student_apt(gaps, bounds, weights)


def compare_exactly(table: Table, same: Same = ALL_DIFFER) -> list[PairedDifference]:
    """All differences between models whose scores are exact, without interval and p."""
    found = []
    for metric, role in sorted({(metric, role) for metric, role, _ in table}):
        aliases = sorted(alias for m, r, alias in table if (m, r) == (metric, role))
        for a, b in combinations(aliases, 2):
            ours, theirs = share_blocks(table[metric, role, a], table[metric, role, b])
            gaps = dict(zip(ours, map(sub, ours.values(), theirs.values()), strict=True))
            if gaps:
                mean, different = fmean(gaps.values()), len(merge_blocks(gaps, same)[0])
                found.append(
                    PairedDifference(role, metric, a, b, mean, None, None, None, different)
                )
    return found


def rank_exactly(
    table: Table,
    lower_is_better: frozenset[str],
    bounds: Mapping[str, tuple[float, float]],
) -> list[Rank]:
    """Ranks from exact scores; models with the same score share their ranks."""
    found = []
    for metric, role in sorted({(metric, role) for metric, role, _ in table}):
        sign = -1 if metric in lower_is_better else 1
        means = {
            alias: sign * fmean(table[m, r, alias].values())
            for m, r, alias in table
            if (m, r) == (metric, role)
        }
        near = 1e-9 * max(1.0, *map(abs, bounds[metric]))
        for alias, own in sorted(means.items()):
            better = sum(other > own + near for other in means.values())
            worse = sum(other < own - near for other in means.values())
            found.append(Rank(role, metric, alias, 1 + better, len(means) - worse))
    return found


def adjust_for_pairs(family: Sequence[PairedDifference]) -> list[PairedDifference]:
    """The same pairs with p adjusted for their number (Holm)."""
    return [
        replace(pair, p=p)
        for pair, p in zip(family, holm([pair.p for pair in family]), strict=True)
    ]


def rank_intervals(
    table: Table,
    differences: Sequence[PairedDifference],
    lower_is_better: frozenset[str],
    alpha: float = ALPHA,
) -> list[Rank]:
    """The range of ranks: from 1 plus the number of models that are significantly better, to the
    number of models minus those that are significantly worse."""
    found: list[Rank] = []
    for metric, role in sorted({(metric, role) for metric, role, _ in table}):
        aliases = sorted(alias for m, r, alias in table if (m, r) == (metric, role))
        # of whom each is surely ahead
        ahead: dict[str, set[str]] = {alias: set() for alias in aliases}
        for pair in differences:
            if (
                (pair.metric, pair.role) == (metric, role)
                and pair.p is not None
                and pair.p <= alpha
            ):
                higher = pair.difference > 0
                winner, loser = (
                    (pair.a, pair.b) if higher != (metric in lower_is_better) else (pair.b, pair.a)
                )
                ahead[winner].add(loser)
        below = {alias: models_below(ahead, alias) for alias in aliases}
        # no circles
        beaten = {
            alias: {other for other in below[alias] if alias not in below[other]}
            for alias in aliases
        }
        found += [
            Rank(
                role,
                metric,
                alias,
                1 + sum(alias in beaten[other] for other in aliases),
                len(aliases) - len(beaten[alias]),
            )
            for alias in aliases
        ]
    return found


def models_below(ahead: Mapping[str, set[str]], alias: str) -> set[str]:
    """All models below a model: those that it beats, those that they beat, and so on."""
    found: set[str] = set()
    waiting = [alias]
    while waiting:
        new = ahead[waiting.pop()] - found - {alias}
        found |= new
        waiting += new
    return found
