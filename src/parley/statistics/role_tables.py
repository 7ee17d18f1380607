"""Role tables for matches of two models, every model against every other (DynaEval, tables 1 to
6), and position effects."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from parley.statistics.block_means import BlockMeans, BlockNames, BlockSums
from parley.statistics.estimates import ALL_DIFFER, Same, merge_blocks
from parley.statistics.intervals import (
    ALPHA,
    UNKNOWN,
    Blocks,
    Interval,
    compute_interval,
    is_constant,
)
from parley.statistics.student_t import t_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Values = NDArray[np.float64]

AT_A_TIME = 10_000  # meetings that are made at a time
Place = tuple[str, int]  # role and position
Pair = tuple[str, str]  # who sat first, who second


class SeatScore(NamedTuple):
    """The score of one seat and its position. A seat without a score is a row without a value,
    so that its partner is known."""

    block: str
    match: int
    role: str
    position: int
    alias: str
    metric: str
    value: float | None


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
class MeetingColumns:
    """All matches of two in one metric. A run may have a million, so they are columns. A seat
    without a score is NaN."""

    metric: str
    blocks: Sequence[str]
    aliases: Sequence[str]
    match: Numbers
    block: Numbers  # the place in `blocks`
    first: Numbers  # the place in `aliases`
    second: Numbers
    first_value: Values
    second_value: Values

    def __iter__(self) -> Iterator[Meeting]:
        names, aliases = self.blocks, self.aliases
        for start in range(0, len(self.match), AT_A_TIME):
            part = slice(start, start + AT_A_TIME)
            columns = (self.match, self.block, self.first, self.second)
            values = (self.first_value, self.second_value)
            for match, block, one, other, first, second in zip(
                *(column[part].tolist() for column in columns),
                *(replace_nan(column[part].tolist()) for column in values),
                strict=True,
            ):
                yield Meeting(
                    names[block], match, self.metric, aliases[one], aliases[other], first, second
                )


def replace_nan(values: Iterable[float]) -> Iterator[float | None]:
    """The same values, with None for NaN."""
    return (None if value != value else value for value in values)


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


def make_role_table(
    met: MeetingColumns,
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

    def __init__(self, met: MeetingColumns, same: Same) -> None:
        import numpy as np

        self._same, self._names = same, met.blocks
        codes, pair = np.unique(met.first * len(met.aliases) + met.second, return_inverse=True)
        ends = (divmod(code, len(met.aliases)) for code in codes.tolist())
        # the number of each pair
        self.pairs: dict[Pair, int] = {
            (met.aliases[one], met.aliases[other]): n for n, (one, other) in enumerate(ends)
        }
        values = (met.first_value, met.second_value)
        missing = tuple(map(np.isnan, values))
        scored = ~(missing[0] & missing[1])
        count = partial(np.bincount, minlength=len(codes))
        self._matches = count(pair[scored]).tolist()
        self._unscored = [count(pair[scored & each]).tolist() for each in missing]
        block, width = met.block, max(1, len(met.blocks))
        if same:
            merged = BlockNames()
            first = [merged.number(same.get(name, name)) for name in met.blocks]
            block = np.array(first, dtype=np.int64)[block]
        places = np.unique(pair[scored] * width + block[scored])
        self._blocks = count(places // width).tolist()
        self._means = [
            average_by_block(pair[~gone], met.block[~gone], value[~gone], width)
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
            import numpy as np

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
    import numpy as np

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
    rows: Iterable[SeatScore],
    bounds: Mapping[str, tuple[float, float]],
    alpha: float = ALPHA,
    same: Same = ALL_DIFFER,
) -> list[Effect]:
    """The effect of every position (early, late) in every role that has several, with a block t
    interval."""
    groups: dict[tuple[str, str], PositionSums] = {}
    for row in rows:
        groups.setdefault((row.metric, row.role), PositionSums()).add(row)
    found = []
    for (metric, role), seats in sorted(groups.items()):
        positions = sorted(seats.positions)
        low, high = bounds[metric]
        most = 2 * (high - low) * (1 - 1 / len(positions))  # no contrast can be larger
        paid = seats.degrees_of_freedom_spent()
        for position, by_block in seats.contrasts().items():
            mean = fmean(by_block.values()) if by_block else None
            values, weights = merge_blocks(by_block, same)
            found.append(
                Effect(
                    metric,
                    role,
                    position,
                    mean,
                    contrast_interval(values, weights, paid, most, alpha),
                    len(values),
                )
            )
    return found


class PositionSums:
    """The scores of one role in one metric, added up by model, position and block."""

    def __init__(self) -> None:
        self.positions: set[int] = set()
        self._blocks = BlockNames()
        self._cells: dict[str, dict[int, BlockSums]] = {}

    def add(self, row: SeatScore) -> None:
        self.positions.add(row.position)
        if row.value is None:
            return
        cells = self._cells.setdefault(row.alias, {})
        if row.position not in cells:
            cells[row.position] = BlockSums(self._blocks)
        cells[row.position].add(self._blocks.number(row.block), row.value)

    def _means(self) -> dict[str, dict[int, BlockMeans]]:
        """By model and position, the mean of each block."""
        return {
            alias: {place: cells[place].means() for place in sorted(cells)}
            for alias, cells in self._cells.items()
        }

    def degrees_of_freedom_spent(self) -> float:
        """The degrees of freedom used by the models' mean scores; 0 if every model has every
        position in every block."""
        places = len(self.positions)
        for cells in self._means().values():
            first, *others = [means.block for means in cells.values()]
            if len(cells) < places or any(other != first for other in others):
                return (len(self._cells) - 1) / max(1, places - 1)
        return 0.0

    def contrasts(self) -> dict[int, BlockMeans]:
        """For each position and block: the score there relative to the models' mean scores, minus
        the same over all positions.

        A model's mean score weighs its positions equally, and the effect of the block cancels, so a
        balanced design gives the effects exactly. A model that has not had every position cannot
        be compared and is left out.
        """
        positions = sorted(self.positions)
        if len(positions) < 2:
            return {}
        means = {
            alias: cells for alias, cells in self._means().items() if len(cells) == len(positions)
        }
        usual = [fmean(fmean(each.value) for each in cells.values()) for cells in means.values()]
        columns = [
            [fill_blocks(cells[place], len(self._blocks.names)) for cells in means.values()]
            for place in positions
        ]
        known = array("i")
        found = [array("d") for _ in positions]
        for block in range(len(self._blocks.names)):
            above = [
                [
                    mean - level
                    for mean, level in zip(map(next, by_alias), usual, strict=True)
                    if mean is not None
                ]
                for by_alias in columns
            ]
            if all(above):
                averages = list(map(fmean, above))
                centre = fmean(averages)
                known.append(block)
                for column, average in zip(found, averages, strict=True):
                    column.append(average - centre)
        return {
            place: BlockMeans(self._blocks, known, column)
            for place, column in zip(positions, found, strict=True)
        }


def fill_blocks(means: BlockMeans, blocks: int) -> Iterator[float | None]:
    """The mean of each block; None if it has none."""
    rest = iter(zip(means.block, means.value, strict=True))
    number, value = next(rest, (blocks, 0.0))
    for block in range(blocks):
        if block < number:
            yield None
        else:
            yield value
            number, value = next(rest, (blocks, 0.0))


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
