"""The results of a run: means over blocks with intervals, paired differences and rank intervals
(DynaEval §A.5)."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import sub
from statistics import fmean
from typing import NamedTuple

from parley.statistics.block_means import share_blocks
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

BOTH_TESTS = 11  # blocks from which on the sign test stands beside Student's t


class Observation(NamedTuple):
    """The score of one seat; the block is the unit of independence."""

    block: str
    match: int
    alias: str
    role: str
    metric: str
    value: float | None


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


def match_means(observations: Iterable[Observation]) -> dict[Key, dict[str, list[float]]]:
    """For each block, the score of every match; if a model holds several seats of a match, their
    scores are averaged."""
    matches: dict[Key, dict[str, dict[int, list[float]]]] = {}
    for block, match, alias, role, metric, value in observations:
        if value is not None:
            cell = matches.setdefault((metric, role, alias), {})
            cell.setdefault(block, {}).setdefault(match, []).append(value)
    return {
        key: {
            block: [fmean(values) for values in by_match.values()]
            for block, by_match in blocks.items()
        }
        for key, blocks in matches.items()
    }


def block_means(observations: Iterable[Observation]) -> dict[Key, dict[str, float]]:
    """The mean of each block; intervals are computed over these means."""
    return {
        key: {block: fmean(values) for block, values in blocks.items()}
        for key, blocks in match_means(observations).items()
    }


def merge_blocks(means: Mapping[str, float], same: Same) -> tuple[Sequence[float], list[int]]:
    """The means of distinct blocks, and the number of identical blocks behind each; no weights
    if all blocks differ."""
    if not same:
        return array("d", means.values()), []
    groups: dict[str, list[float]] = {}
    for block, mean in means.items():
        groups.setdefault(same[block], []).append(mean)
    return list(map(fmean, groups.values())), list(map(len, groups.values()))


class CellTally(NamedTuple):
    """What one cell is computed from."""

    means: Mapping[str, float]  # by block
    matches: int  # also those without a score
    missing: int  # scores without a value


def tally_cells(observations: Iterable[Observation]) -> dict[Key, CellTally]:
    """The block means and counts of every model in every role and metric."""
    rows = list(observations)
    table = block_means(rows)
    matches: dict[Key, set[int]] = {}
    missing: Counter[Key] = Counter()
    for row in rows:
        key = row.metric, row.role, row.alias
        matches.setdefault(key, set()).add(row.match)
        missing[key] += row.value is None
    return {
        key: CellTally(table.get(key, {}), len(played), missing[key])
        for key, played in matches.items()
    }


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
    gaps = array("d", map(sub, mine, others))
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
