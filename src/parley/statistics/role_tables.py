"""Role tables for matches of two models, every model against every other (DynaEval, tables 1 to
6), and position effects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from parley.statistics.estimates import ALL_DIFFER, Same, merge_blocks
from parley.statistics.intervals import (
    ALPHA,
    UNKNOWN,
    Blocks,
    Interval,
    compute_interval,
    is_constant,
)
from parley.statistics.score_table import (
    AT_A_TIME,
    NO_VALUE,
    Flags,
    Numbers,
    ScoreTable,
    TableRows,
    Values,
    find_starts,
)
from parley.statistics.student_t import t_quantile

Place = tuple[str, int]  # role and position
Pair = tuple[str, str]  # who sat first, who second
MEETING = np.dtype(
    [
        ("match", np.int64),
        ("block", np.int32),
        ("first", np.int32),
        ("second", np.int32),
        ("first_value", float),
        ("second_value", float),
    ]
)


class Meeting(NamedTuple):
    """One match of two in one metric."""

    block: str
    match: int
    metric: str
    first: str
    second: str
    first_value: float | None
    second_value: float | None


@dataclass(frozen=True)
class Meetings:
    """All matches of two in one metric. `rows` is a table of the columns in `MEETING`; a seat
    without a score is NaN. Iterating makes a `Meeting` of each row."""

    metric: str
    blocks: Sequence[str]
    aliases: Sequence[str]
    rows: TableRows

    def __iter__(self) -> Iterator[Meeting]:
        for start in range(0, len(self.rows), AT_A_TIME):
            for match, block, first, second, *values in self.rows[
                start : start + AT_A_TIME
            ].tolist():
                one, other = (None if value != value else value for value in values)
                pair = (self.aliases[first], self.aliases[second])
                yield Meeting(self.blocks[block], match, self.metric, *pair, one, other)


class MeetingCell(NamedTuple):
    """The scores of two models in this seat order: means of block means, over matches with a
    score."""

    first: float | None
    second: float | None
    matches: int = 0
    blocks: int = 0
    # of those matches, how many gave the first and the second seat no score that counts
    unscored: tuple[int, int] = (0, 0)
    first_interval: Interval = UNKNOWN
    second_interval: Interval = UNKNOWN

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        plain = {
            name: getattr(self, name)
            for name in ("first", "second", "matches", "blocks", "unscored")
        }
        (low, high, _), (second_low, second_high, _) = self.first_interval, self.second_interval
        return {
            **plain,
            "first_low": low,
            "first_high": high,
            "second_low": second_low,
            "second_high": second_high,
        }


class Margin(NamedTuple):
    """The mean of a row or a column, where every partner has the same weight; unknown if nothing
    was played.

    The interval is over blocks. It is known only if every block has all partners, because otherwise
    blocks differ by their partners.
    """

    mean: float | None
    cells: int
    matches: int
    interval: Interval = UNKNOWN

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        low, high, _ = self.interval
        return {
            "mean": self.mean,
            "low": low,
            "high": high,
            "cells": self.cells,
            "matches": self.matches,
        }


class Margins(NamedTuple):
    """Row means are scores of the first seat, column means are scores of the second seat; then
    both over the whole table."""

    rows: dict[str, Margin]
    columns: dict[str, Margin]
    first: Margin
    second: Margin

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rows": {alias: margin.facts() for alias, margin in self.rows.items()},
            "columns": {alias: margin.facts() for alias, margin in self.columns.items()},
            "all": {"first": self.first.facts(), "second": self.second.facts()},
        }


@dataclass(frozen=True)
class MeetingTable:
    """First seats are rows, second seats are columns. A pair that was excluded or never played
    is None, never zero."""

    metric: str
    aliases: tuple[str, ...]
    cells: Mapping[Pair, MeetingCell | None]
    margins: Margins


@dataclass(frozen=True)
class Effect:
    """The effect of a position on a score, compared with the mean over all positions of the
    role."""

    metric: str
    role: str
    position: int
    mean: float | None
    interval: Interval
    blocks: int


def find_two_seats(places: Iterable[Place], roles: Sequence[str]) -> tuple[Place, Place] | None:
    """The first and the second seat of a run, with roles in the task's order; None if matches do
    not have exactly two seats."""
    found = sorted({(roles.index(role), position) for role, position in places if role in roles})
    if len(found) != 2:
        return None
    first, second = ((roles[role], position) for role, position in found)
    return first, second


class SeatedModels(NamedTuple):
    """Who sat in two places."""

    match: Numbers
    block: Numbers
    who: Numbers  # for both places, by match: the place in `aliases`; -1: nobody has scores
    aliases: list[str]
    row: Numbers  # of each score: the place of its match
    side: Numbers  # of each score: which of the two places

    @property
    def complete(self) -> Flags:
        """Whether both places have scores, by match."""
        found: Flags = self.who.min(axis=0, initial=0) >= 0
        return found


def seat_models(scores: ScoreTable, places: tuple[Place, Place]) -> SeatedModels:
    """The matches in which places have scores. All scores must be of these places."""
    rows, aliases = scores.rows, dict[str, int]()
    alias = [aliases.setdefault(each.alias, len(aliases)) for each in scores.seats]
    sides = [places.index((each.role, each.position)) for each in scores.seats]
    starts = find_starts(rows["match"])
    row = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
    side = np.array(sides, dtype=np.int64)[rows["seat"]]
    who = np.full((2, len(starts)), -1)
    who[side, row] = np.array(alias, dtype=np.int64)[rows["seat"]]
    return SeatedModels(rows["match"][starts], rows["block"][starts], who, list(aliases), row, side)


def find_meetings(scores: ScoreTable, places: tuple[Place, Place], metric: str) -> Meetings:
    """The matches in which both places have scores, at least one of them in this metric."""
    seated = seat_models(scores, places)
    chosen = np.flatnonzero(scores.have_seats(lambda each: each.metric == metric))
    row = seated.row[chosen]
    values = np.full(seated.who.shape, NO_VALUE)
    values[seated.side[chosen], row] = scores.rows["value"][chosen]
    kept = np.zeros(len(seated.match), dtype=bool)
    kept[row] = True
    kept &= seated.complete
    met = np.zeros(np.count_nonzero(kept), MEETING)
    columns = (seated.match, seated.block, *seated.who, *values)
    for name, column in zip(MEETING.names or (), columns, strict=True):
        met[name] = column[kept]
    return Meetings(metric, scores.blocks, seated.aliases, met)


def make_role_table(
    met: Meetings,
    aliases: Sequence[str],
    bounds: tuple[float, float],
    same: Same = ALL_DIFFER,
) -> MeetingTable:
    """The table of one metric. Models in `aliases` that did not play keep an empty row and
    column. For intervals, identical blocks are one observation."""
    played = PlayedPairs(met, same)
    listed = tuple(
        dict.fromkeys([*aliases, *sorted({each for one in played.pairs for each in one})])
    )
    cells = {
        (one, other): played.make_cell((one, other), bounds) for one in listed for other in listed
    }
    edges = played.add_margin_intervals(average_margins(cells, listed), bounds)
    return MeetingTable(met.metric, listed, cells, edges)


class PlayedPairs:
    """The meetings in one metric by pair of models, with the mean of each block on both sides."""

    def __init__(self, met: Meetings, same: Same) -> None:
        rows = met.rows
        self._same, self._names = same, met.blocks
        codes, pair = np.unique(
            rows["first"] * len(met.aliases) + rows["second"], return_inverse=True
        )
        ends = (divmod(code, len(met.aliases)) for code in codes.tolist())
        # the number of each pair
        self.pairs: dict[Pair, int] = {
            (met.aliases[one], met.aliases[other]): n for n, (one, other) in enumerate(ends)
        }
        values = (rows["first_value"], rows["second_value"])
        missing = tuple(map(np.isnan, values))
        scored = ~(missing[0] & missing[1])
        count = partial(np.bincount, minlength=len(codes))
        self._matches = count(pair[scored]).tolist()
        self._unscored = [count(pair[scored & each]).tolist() for each in missing]
        block, width = rows["block"].astype(np.int64), max(1, len(met.blocks))
        merged = block
        if same:
            number: dict[str, int] = {}
            first = [number.setdefault(same.get(name, name), len(number)) for name in met.blocks]
            merged = np.array(first, dtype=np.int64)[block]
        places = np.unique(pair[scored] * width + merged[scored])
        self._blocks = count(places // width).tolist()
        self._means = [
            average_by_block(pair[~gone], block[~gone], value[~gone], width)
            for gone, value in zip(missing, values, strict=True)
        ]

    def make_cell(self, pair: Pair, bounds: tuple[float, float]) -> MeetingCell | None:
        """The cell of a pair; None if no match gave either seat a score."""
        number = self.pairs.get(pair)
        if number is None or not self._matches[number]:
            return None
        found, intervals = list[float | None](), list[Interval]()
        for means in self._means:
            block, value = means.of_pair(number)
            found.append(fmean(value.tolist()) if len(value) else None)
            intervals.append(self._interval(block, value, bounds))
        return MeetingCell(
            found[0],
            found[1],
            self._matches[number],
            self._blocks[number],
            (self._unscored[0][number], self._unscored[1][number]),
            intervals[0],
            intervals[1],
        )

    def add_margin_intervals(self, edges: Margins, bounds: tuple[float, float]) -> Margins:
        """Margins with their intervals over blocks."""

        def known(place: int, margin: Margin, alias: str = "") -> Margin:
            means = self._means[place]
            wanted = [alias in ("", pair[place]) for pair in self.pairs]
            chosen = np.array(wanted, dtype=bool)[means.pair]
            block, value = means.block[chosen], means.value[chosen]
            cells, sums = np.bincount(block), np.bincount(block, value)
            blocks = np.flatnonzero(cells)
            if (cells[blocks] < margin.cells).any():
                return margin
            found = self._interval(blocks, sums[blocks] / cells[blocks], bounds)
            return margin._replace(interval=found)

        rows = {alias: known(0, margin, alias) for alias, margin in edges.rows.items()}
        columns = {alias: known(1, margin, alias) for alias, margin in edges.columns.items()}
        return Margins(rows, columns, known(0, edges.first), known(1, edges.second))

    def _interval(self, block: Numbers, value: Values, bounds: tuple[float, float]) -> Interval:
        if not self._same:
            return compute_interval(value.tolist(), bounds)
        names = map(self._names.__getitem__, block.tolist())
        values, weights = merge_blocks(dict(zip(names, value.tolist(), strict=True)), self._same)
        return compute_interval(values, bounds, weights=weights)


class PairMeans(NamedTuple):
    """The means of blocks by pair, sorted by pair and block."""

    pair: Numbers
    block: Numbers
    value: Values

    def of_pair(self, number: int) -> tuple[Numbers, Values]:
        """The blocks of one pair and their means."""
        start, end = self.pair.searchsorted([number, number + 1])
        return self.block[start:end], self.value[start:end]


def average_by_block(pair: Numbers, block: Numbers, value: Values, width: int) -> PairMeans:
    """The mean of each block of each pair; `width` is more than any number of a block."""
    places, row = np.unique(pair * width + block, return_inverse=True)
    found = np.bincount(row, value, len(places)) / np.bincount(row, minlength=len(places))
    return PairMeans(*np.divmod(places, width), found)


def average_margins(cells: Mapping[Pair, MeetingCell | None], aliases: Iterable[str]) -> Margins:
    """Row and column means computed from cells alone, as in the paper's tables; this also works
    for published cells."""
    firsts = [
        (row, cell.first, cell.matches - cell.unscored[0])
        for (row, _), cell in cells.items()
        if cell
    ]
    seconds = [
        (column, cell.second, cell.matches - cell.unscored[1])
        for (_, column), cell in cells.items()
        if cell
    ]

    def margin(side: Sequence[tuple[str, float | None, int]], alias: str | None = None) -> Margin:
        found = [
            (value, matches)
            for name, value, matches in side
            if value is not None and alias in (None, name)
        ]
        mean = fmean(value for value, _ in found) if found else None
        return Margin(mean, len(found), sum(matches for _, matches in found))

    listed = list(aliases)
    rows, columns = ({alias: margin(side, alias) for alias in listed} for side in (firsts, seconds))
    return Margins(rows, columns, margin(firsts), margin(seconds))


def position_effects(
    scores: ScoreTable,
    bounds: Mapping[str, tuple[float, float]],
    alpha: float = ALPHA,
    same: Same = ALL_DIFFER,
) -> list[Effect]:
    """The effect of every position (early, late) in every role that has several, with a block t
    interval."""
    found = []
    used = scores.used_seats()
    for metric, role in sorted({(each.metric, each.role) for each in used}):
        seats = [each for each in used if (each.metric, each.role) == (metric, role)]
        positions = sorted({each.position for each in seats})
        if len(positions) < 2:
            continue
        low, high = bounds[metric]
        most = 2 * (high - low) * (1 - 1 / len(positions))  # no contrast can be larger
        means = average_positions(scores.with_seats(set(seats).__contains__), positions)
        paid = means.degrees_of_freedom_spent()
        blocks, contrasts = means.contrasts()
        names = [scores.blocks[at] for at in blocks.tolist()]
        for position, contrast in zip(positions, contrasts.tolist(), strict=True):
            values, weights = merge_blocks(dict(zip(names, contrast, strict=True)), same)
            interval = contrast_interval(values, weights, paid, most, alpha)
            mean = fmean(contrast) if contrast else None
            found.append(Effect(metric, role, position, mean, interval, len(values)))
    return found


class PositionMeans(NamedTuple):
    """The mean of each model in each position and block."""

    positions: int
    blocks: int
    model: Numbers
    position: Numbers
    block: Numbers
    mean: Values

    def degrees_of_freedom_spent(self) -> float:
        """The degrees of freedom used by the models' mean scores; 0 if every model has every
        position in every block."""
        _, held = np.unique(self.model * self.blocks + self.block, return_counts=True)
        if (held == self.positions).all():
            return 0.0
        return (len(np.unique(self.model)) - 1) / max(1, self.positions - 1)

    def contrasts(self) -> tuple[Numbers, Values]:
        """Blocks, and for each position and block: the score there relative to the models' mean
        scores, minus the same over all positions.

        A model's mean score weighs its positions equally, and the effect of the block cancels, so a
        balanced design gives the effects exactly. A model that has not had every position cannot
        be compared and is left out.
        """
        place = self.model * self.positions + self.position
        size = (int(self.model.max(initial=-1)) + 1) * self.positions
        held = np.bincount(place, minlength=size).reshape(-1, self.positions)
        sums = np.bincount(place, self.mean, size).reshape(-1, self.positions)
        whole = held.min(axis=1) > 0
        usual = (sums / np.maximum(held, 1)).mean(axis=1)
        kept = whole[self.model]
        place = self.position[kept] * self.blocks + self.block[kept]
        above, shape = (self.mean - usual[self.model])[kept], (self.positions, self.blocks)
        counts = np.bincount(place, minlength=self.positions * self.blocks).reshape(shape)
        sums = np.bincount(place, above, self.positions * self.blocks).reshape(shape)
        known = np.flatnonzero(counts.min(axis=0))
        averages = sums[:, known] / counts[:, known]
        return known, averages - averages.mean(axis=0)


def average_positions(scores: ScoreTable, positions: Sequence[int]) -> PositionMeans:
    """The means of the scores of one role in one metric."""
    aliases: dict[str, int] = {}
    model = [aliases.setdefault(each.alias, len(aliases)) for each in scores.seats]
    place = {position: at for at, position in enumerate(positions)}
    at = [place.get(each.position, -1) for each in scores.seats]  # -1: of roles without rows here
    rows = scores.rows[~np.isnan(scores.rows["value"])]
    seat, block = rows["seat"], rows["block"]
    columns = [np.array(each, dtype=np.int64)[seat] for each in (model, at)]
    sizes = (max(len(aliases), 1), len(positions), max(len(scores.blocks), 1))
    cells, row = np.unique(np.ravel_multi_index((*columns, block), sizes), return_inverse=True)
    found = np.bincount(row, rows["value"], len(cells)) / np.bincount(row, minlength=len(cells))
    models, places, blocks = np.unravel_index(cells, sizes)
    return PositionMeans(sizes[1], sizes[2], models, places, blocks, found)


def contrast_interval(
    values: Sequence[float], weights: Sequence[int], paid: float, most: float, alpha: float
) -> Interval:
    """A t interval over blocks that accounts for estimating the models' mean scores; unknown if
    no degrees of freedom are left."""
    freedom = len(values) - 1 - paid
    if freedom < 1:
        return Interval(None, None, None)
    if not paid or is_constant(values, (-most, most)):
        return compute_interval(values, (-most, most), alpha, weights=weights)
    blocks = Blocks(values, (-most, most), weights)
    error = blocks.error * math.sqrt((len(values) - 1) / freedom)
    half = t_quantile(1 - alpha / 2, freedom) * error
    return Interval(max(-most, blocks.mean - half), min(most, blocks.mean + half), "block t")
