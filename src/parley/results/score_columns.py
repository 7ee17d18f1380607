"""The scores of a run as columns. A run may have millions of scores: as objects they would take
gigabytes, so rows are made while they are read."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from parley.rules.pool import Seat
from parley.statistics.block_means import BlockNames, BlockSums
from parley.statistics.estimates import CellTally, Key, Observation
from parley.statistics.role_tables import MeetingColumns, Place
from parley.store import Score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
Number = TypeVar("Number", int, float)
NO_VALUE = float("nan")
AT_A_TIME = 10_000  # rows that are made at a time


class LazyRows(Generic[T]):
    """Rows of a known number that are made each time they are read."""

    def __init__(self, make: Callable[[], Iterator[T]], length: int) -> None:
        self._make, self._length = make, length

    def __iter__(self) -> Iterator[T]:
        return self._make()

    def __len__(self) -> int:
        return self._length


def select_values(column: array[Number], chosen: bytes) -> array[Number]:
    """The values of a column for which `chosen` is not 0."""
    return array(column.typecode, compress(column, chosen))


class ScoredSeat(NamedTuple):
    """What many scores share."""

    seat: Seat
    alias: str
    metric: str
    unscored: bool


@dataclass(frozen=True)
class ScoreColumns:
    """Scores by match, seat and metric. A score without a value is NaN."""

    blocks: BlockNames
    seats: Sequence[ScoredSeat]
    match: array[int]
    block: array[int]
    seat: array[int]  # the place in `seats`
    value: array[float]

    @classmethod
    def read(cls, scores: Iterable[Score], blocks: BlockNames) -> ScoreColumns:
        """The scores that a reader yields, by match."""
        match, block, seat, value = array("q"), array("i"), array("i"), array("d")
        seats: dict[tuple[Seat, str, str, bool], int] = {}
        name, number = "", -1
        for of, where, place, alias, metric, given, unscored in scores:
            if where != name or number < 0:
                name, number = where, blocks.number(where)
            sat = place, alias, metric, unscored
            at = seats.get(sat)
            if at is None:
                at = seats[sat] = len(seats)
            match.append(of)
            block.append(number)
            seat.append(at)
            value.append(NO_VALUE if given is None else given)
        return cls(blocks, [ScoredSeat(*sat) for sat in seats], match, block, seat, value)

    def __len__(self) -> int:
        return len(self.match)

    def select(self, kept: Iterable[Any]) -> ScoreColumns:
        """The scores for which `kept` is true."""
        chosen = bytes(map(bool, kept))
        return replace(
            self,
            match=select_values(self.match, chosen),
            block=select_values(self.block, chosen),
            seat=select_values(self.seat, chosen),
            value=select_values(self.value, chosen),
        )

    def with_seats(self, wanted: Callable[[ScoredSeat], bool]) -> ScoreColumns:
        """The scores of some seats, aliases or metrics."""
        chosen = [wanted(each) for each in self.seats]
        return self if all(chosen) else self.select(map(chosen.__getitem__, self.seat))

    def values_of(self, wanted: Callable[[ScoredSeat], bool]) -> array[float]:
        """The values of some seats, aliases or metrics."""
        chosen = [wanted(each) for each in self.seats]
        return select_values(self.value, bytes(map(chosen.__getitem__, self.seat)))

    def in_blocks(self, names: Iterable[str]) -> ScoreColumns:
        """The scores of some blocks."""
        chosen = set(map(self.blocks.find, names))
        return self.select(map(chosen.__contains__, self.block))

    def used_seats(self) -> list[ScoredSeat]:
        """The seats, aliases and metrics that have scores."""
        return [self.seats[at] for at in sorted(set(self.seat))]

    def pair_metrics(self, role: str, first: str, second: str) -> PairedMetrics | None:
        """The scores of a role in two metrics; None if no model has both in a match. If a model has
        several seats in a match, the last one counts."""
        import numpy as np

        aliases: dict[str, int] = {}
        alias = np.array([aliases.setdefault(each.alias, len(aliases)) for each in self.seats])
        side = np.full(len(self.seats), -1)
        for at, each in enumerate(self.seats):
            if each.seat.role == role and each.metric in (first, second):
                side[at] = each.metric != first
        if not len(self):
            return None
        seat = np.asarray(self.seat)
        chosen = np.flatnonzero(side[seat] >= 0)
        seat, value = seat[chosen], np.asarray(self.value)[chosen]
        row = np.cumsum(np.diff(np.asarray(self.match)[chosen], prepend=-1) != 0)
        _, start, pair = np.unique(
            row * len(aliases) + alias[seat], return_index=True, return_inverse=True
        )
        values, has_score = np.full((2, len(start)), NO_VALUE), np.zeros((2, len(start)), bool)
        values[side[seat], pair] = value
        has_score[side[seat], pair] = True
        if not has_score.all(axis=0).any():
            return None
        known = value == value
        cell = side[seat[known]] * len(aliases) + alias[seat[known]]
        sums = np.bincount(cell, value[known], 2 * len(aliases)).reshape(2, -1)
        counts = np.bincount(cell, minlength=2 * len(aliases)).reshape(2, -1)
        both = counts.all(axis=0)
        means = (sums[:, both] / counts[:, both]).T.tolist()
        block = np.asarray(self.block)[chosen][start]
        one, other = values
        return PairedMetrics(block, one, other, [(a, b) for a, b in means])

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
        for match, block, (seat, alias, metric, unscored), value in self.rows():
            yield Score(match, block, seat, alias, metric, value, unscored)

    def observations(self) -> Iterator[Observation]:
        for match, block, (seat, alias, metric, _), value in self.rows():
            yield Observation(block, match, alias, seat.role, metric, value)

    def tally_cells(self) -> dict[Key, CellTally]:
        """The block means and counts of every model in every role and metric."""
        numbers: dict[Key, int] = {}
        cells = [
            numbers.setdefault((metric, seat.role, alias), len(numbers))
            for seat, alias, metric, _ in self.seats
        ]
        tallies = [CellSums(self.blocks) for _ in numbers]
        for start in range(0, len(self), AT_A_TIME):
            part = slice(start, start + AT_A_TIME)
            columns = (self.match[part], self.block[part], self.seat[part], self.value[part])
            for match, block, seat, value in zip(*columns, strict=True):
                tallies[cells[seat]].add(match, block, value)
        return {
            key: tally.finish()
            for key, tally in zip(numbers, tallies, strict=True)
            if tally.matches
        }


@dataclass(frozen=True)
class PairedMetrics:
    """The scores of models in two metrics, one row per match and model; NaN if one is missing."""

    block: NDArray[np.int64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    means: list[tuple[float, float]]  # of all models that have scores in both metrics


class PairedSeats:
    """The matches in which two places have scores, and who sat there."""

    def __init__(self, scores: ScoreColumns, places: tuple[Place, Place]) -> None:
        """All scores must be of these places."""
        import numpy as np

        self._scores = scores
        aliases: dict[str, int] = {}
        alias = [aliases.setdefault(each.alias, len(aliases)) for each in scores.seats]
        self._aliases = list(aliases)
        self._side = np.array([find_place(places, each.seat) for each in scores.seats], dtype=int)
        match, seat = np.asarray(scores.match), np.asarray(scores.seat)
        starts = np.flatnonzero(np.diff(match, prepend=-1))
        # of each score: the place of its match
        self._row = np.cumsum(np.diff(match, prepend=-1) != 0, dtype=np.int32) - 1
        self._match, self._block = match[starts], np.asarray(scores.block)[starts].astype(int)
        self._who = np.full((2, len(starts)), -1)
        self._who[self._side[seat], self._row] = np.array(alias, dtype=int)[seat]
        self._complete = (self._who >= 0).all(axis=0)

    def matches(self) -> frozenset[int]:
        """The numbers of these matches."""
        return frozenset(self._match[self._complete].tolist())

    def meetings(self, metric: str) -> MeetingColumns:
        """The matches in which at least one place has a score in this metric. An unscored seat has
        none."""
        import numpy as np

        seats = self._scores.seats
        measured = np.array([each.metric == metric for each in seats], dtype=bool)
        unscored = np.array([each.unscored for each in seats], dtype=bool)
        seat = np.asarray(self._scores.seat)
        chosen = np.flatnonzero(measured[seat])
        seat, row = seat[chosen], self._row[chosen]
        value = np.where(unscored[seat], NO_VALUE, np.asarray(self._scores.value)[chosen])
        values = np.full(self._who.shape, NO_VALUE)
        values[self._side[seat], row] = value
        kept = np.zeros(len(self._match), dtype=bool)
        kept[row] = True
        kept &= self._complete
        return MeetingColumns(
            metric,
            self._scores.blocks.names,
            self._aliases,
            self._match[kept],
            self._block[kept],
            *self._who[:, kept],
            *values[:, kept],
        )


def find_place(places: tuple[Place, Place], seat: Seat) -> int:
    """Which of two places a seat is."""
    return places.index((seat.role, seat.number))


class CellSums:
    """Adds up the scores of one cell, by match. If a model has several seats in a match, the mean
    of their scores counts."""

    def __init__(self, blocks: BlockNames) -> None:
        self._sums = BlockSums(blocks)
        self._match: int | None = None
        self._block, self._total, self._seats = 0, 0.0, 0
        self.matches = self.missing = 0

    def add(self, match: int, block: int, value: float) -> None:
        if match != self._match:
            self._add_match()
            self._match, self._block = match, block
            self.matches += 1
        if value == value:
            self._total += value
            self._seats += 1
        else:
            self.missing += 1

    def finish(self) -> CellTally:
        """The means by block."""
        self._add_match()
        return CellTally(self._sums.means(), self.matches, self.missing)

    def _add_match(self) -> None:
        if self._seats:
            self._sums.add(self._block, self._total / self._seats)
            self._total, self._seats = 0.0, 0
