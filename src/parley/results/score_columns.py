"""The scores of a run as columns. A run may have millions of scores: as objects they would take
gigabytes, so rows are made while they are read."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from parley.rules.pool import Seat
from parley.statistics.estimates import CellTally, Key, Observation
from parley.statistics.role_tables import Meeting, Place
from parley.store import Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

T = TypeVar("T")
AT_A_TIME = 10_000  # rows that are made at a time


class Rows(Generic[T]):
    """Rows of a known number that are made each time they are read."""

    def __init__(self, make: Callable[[], Iterator[T]], length: int) -> None:
        self._make, self._length = make, length

    def __iter__(self) -> Iterator[T]:
        return self._make()

    def __len__(self) -> int:
        return self._length


class BlockNames:
    """Blocks by number, in the order in which they are first met."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found

    def find(self, name: str) -> int | None:
        """The number of a block; None if the run does not have it."""
        return self._numbers.get(name)


class ScoredSeat(NamedTuple):
    """What many scores share."""

    seat: Seat
    alias: str
    metric: str
    idle: bool


@dataclass(frozen=True)
class ScoreColumns:
    """Scores by match, seat and metric. A score without a value is NaN."""

    blocks: BlockNames
    seats: Sequence[ScoredSeat]
    match: NDArray[np.int64]
    block: NDArray[np.int32]
    seat: NDArray[np.int32]  # the place in `seats`
    value: NDArray[np.float64]

    @classmethod
    def read(cls, scores: Iterable[Score], blocks: BlockNames) -> ScoreColumns:
        """The scores that a reader yields, by match."""
        match, block, seat, value = array("q"), array("i"), array("i"), array("d")
        seats: dict[ScoredSeat, int] = {}
        name, number = "", -1
        for score in scores:
            if score.block != name or number < 0:
                name, number = score.block, blocks.number(score.block)
            sat = ScoredSeat(score.seat, score.alias, score.metric, score.idle)
            match.append(score.match)
            block.append(number)
            seat.append(seats.setdefault(sat, len(seats)))
            value.append(np.nan if score.value is None else score.value)
        return cls(
            blocks,
            list(seats),
            np.frombuffer(match, np.int64),
            np.frombuffer(block, np.int32),
            np.frombuffer(seat, np.int32),
            np.frombuffer(value, np.float64),
        )

    def __len__(self) -> int:
        return len(self.match)

    def select(self, kept: Mask) -> ScoreColumns:
        """Some of the scores."""
        return ScoreColumns(
            self.blocks,
            self.seats,
            self.match[kept],
            self.block[kept],
            self.seat[kept],
            self.value[kept],
        )

    def with_seats(self, wanted: Callable[[ScoredSeat], bool]) -> ScoreColumns:
        """The scores of some seats, aliases or metrics."""
        chosen = np.array([wanted(each) for each in self.seats], dtype=bool)
        return self if chosen.all() else self.select(chosen[self.seat])

    def in_blocks(self, names: Iterable[str]) -> ScoreColumns:
        """The scores of some blocks."""
        chosen = np.zeros(len(self.blocks.names), dtype=bool)
        chosen[[at for name in names if (at := self.blocks.find(name)) is not None]] = True
        return self.select(chosen[self.block])

    def used_seats(self) -> list[ScoredSeat]:
        """The seats, aliases and metrics that have scores."""
        return [self.seats[at] for at in np.unique(self.seat).tolist()]

    def rows(self) -> Iterator[tuple[int, str, ScoredSeat, float | None]]:
        """Match, block, seat and value of every score."""
        names = self.blocks.names
        for start in range(0, len(self), AT_A_TIME):
            part = slice(start, start + AT_A_TIME)
            columns: Any = (self.match, self.block, self.seat, self.value)
            for match, block, seat, value in zip(
                *(column[part].tolist() for column in columns), strict=True
            ):
                yield match, names[block], self.seats[seat], None if value != value else value

    def scores(self) -> Iterator[Score]:
        for match, block, (seat, alias, metric, idle), value in self.rows():
            yield Score(match, block, seat, alias, metric, value, idle)

    def observations(self) -> Iterator[Observation]:
        for match, block, (seat, alias, metric, _), value in self.rows():
            yield Observation(block, match, alias, seat.role, metric, value)

    def meetings(self, metric: str, places: tuple[Place, Place]) -> Iterator[Meeting]:
        """The matches in which both places were taken and one of them has this metric. The score
        of an idle seat is None."""
        first, second = (self.in_place(place) for place in places)
        numbers = np.intersect1d(first.match, second.match)
        sides = [side.find_matches(numbers) for side in (first, second)]
        values, given = [], np.zeros(len(numbers), dtype=bool)
        for side in (first, second):
            own = side.with_seats(lambda each: each.metric == metric)
            own = own.select(np.isin(own.match, numbers))
            at = np.searchsorted(numbers, own.match)
            idle = np.array([each.idle for each in own.seats], dtype=bool)[own.seat]
            value = np.full(len(numbers), np.nan)
            value[at], given[at] = np.where(idle, np.nan, own.value), True
            values.append(value)
        columns: Any = (first.block[sides[0]], numbers, first.seat[sides[0]])
        columns += (second.seat[sides[1]], *values)
        for rows in np.array_split(np.flatnonzero(given), len(numbers) // AT_A_TIME + 1):
            for block, match, one, other, mine, theirs in zip(
                *(column[rows].tolist() for column in columns), strict=True
            ):
                yield Meeting(
                    self.blocks.names[block],
                    match,
                    metric,
                    self.seats[one].alias,
                    self.seats[other].alias,
                    None if mine != mine else mine,
                    None if theirs != theirs else theirs,
                )

    def in_place(self, place: Place) -> ScoreColumns:
        """The scores of one place."""
        return self.with_seats(lambda each: tuple(each.seat) == place)

    def both_in(self, places: tuple[Place, Place]) -> list[int]:
        """The numbers of matches that have scores in both places."""
        first, second = (self.in_place(place).match for place in places)
        numbers: list[int] = np.intersect1d(first, second).tolist()
        return numbers

    def find_matches(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of the first score of each of these matches, all of which have one."""
        return np.searchsorted(self.match, numbers)

    def tally_cells(self) -> dict[Key, CellTally]:
        """The block means and counts of every model in every role and metric."""
        cells: dict[Key, list[int]] = {}
        for number, (seat, alias, metric, _) in enumerate(self.seats):
            cells.setdefault((metric, seat.role, alias), []).append(number)
        found = {}
        for key, seats in cells.items():
            own = np.isin(self.seat, seats) if len(seats) > 1 else self.seat == seats[0]
            if own.any():
                found[key] = self.select(own).tally()
        return found

    def tally(self) -> CellTally:
        """The block means and counts of all these scores, which belong to one cell."""
        known = ~np.isnan(self.value)
        match, value = self.match[known], self.value[known]
        missing, matches = len(known) - len(match), count_runs(self.match)
        if not len(match):
            return CellTally({}, matches, missing)
        # a model with several seats of a match: the mean of their scores
        first = np.flatnonzero(np.diff(match, prepend=match[0] - 1))
        sizes = np.diff(first, append=len(match))
        means = np.add.reduceat(value, first) / sizes
        block = self.block[known][first]
        counts = np.bincount(block)
        played = np.flatnonzero(counts)
        by_block = np.bincount(block, means)[played] / counts[played]
        names = self.blocks.names
        return CellTally(
            dict(zip((names[n] for n in played.tolist()), by_block.tolist(), strict=True)),
            matches,
            missing,
        )


def count_runs(values: NDArray[np.int64]) -> int:
    """The number of different values in a sorted column."""
    return int(np.count_nonzero(np.diff(values))) + 1 if len(values) else 0


def distinct_rows(*columns: NDArray[Any]) -> list[NDArray[Any]]:
    """The different rows of a table, sorted by the first column, then the second, and so on."""
    order = np.lexsort(columns[::-1])
    changed = np.zeros(len(order), dtype=bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[order[1:]] != column[order[:-1]]
    return [column[order[changed]] for column in columns]
