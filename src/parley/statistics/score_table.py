"""Scores as one numpy table, with a row for each seat, match and metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROW = np.dtype([("match", np.int64), ("block", np.int32), ("seat", np.int32), ("value", float)])
NO_VALUE = float("nan")
AT_A_TIME = 10_000  # observations that are made at a time

Numbers = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]
TableRows = NDArray[Any]  # with named columns


class Observation(NamedTuple):
    """The score of one seat; the block is the unit of independence."""

    block: str
    match: int
    alias: str
    role: str
    metric: str
    value: float | None
    position: int = 0  # of the seat among those of its role


class ScoredSeat(NamedTuple):
    """What many scores share."""

    alias: str
    role: str
    metric: str
    position: int = 0
    unscored: bool = False  # the seat only completes the match


@dataclass(frozen=True)
class ScoreTable:
    """Scores by match. `rows` has the columns `match`, `block` and `seat` (places in the lists) and
    `value`, which is NaN if it is missing. Iterating makes an `Observation` of each row."""

    rows: TableRows
    blocks: list[str]
    seats: list[ScoredSeat]

    @classmethod
    def read(
        cls,
        scores: Iterable[tuple[int, str, ScoredSeat, float | None]],
        blocks: Iterable[str] = (),
    ) -> ScoreTable:
        """The scores with their matches, blocks and seats. Blocks in `blocks` have these places."""
        block_at = {name: at for at, name in enumerate(blocks)}
        seat_at: dict[ScoredSeat, int] = {}
        rows = np.fromiter(
            (
                (
                    match,
                    block_at.setdefault(block, len(block_at)),
                    seat_at.setdefault(seat, len(seat_at)),
                    NO_VALUE if value is None else value,
                )
                for match, block, seat, value in scores
            ),
            ROW,
        )
        return cls(rows, list(block_at), list(seat_at))

    @classmethod
    def of(cls, observations: Iterable[Observation]) -> ScoreTable:
        """A table of these observations."""
        return cls.read(
            (match, block, ScoredSeat(alias, role, metric, position), value)
            for block, match, alias, role, metric, value, position in observations
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Observation]:
        for start in range(0, len(self.rows), AT_A_TIME):
            for match, block, seat, value in self.rows[start : start + AT_A_TIME].tolist():
                alias, role, metric, position, _ = self.seats[seat]
                known = None if value != value else value
                yield Observation(self.blocks[block], match, alias, role, metric, known, position)

    def select(self, kept: Flags) -> ScoreTable:
        """The rows for which `kept` is true."""
        return self if kept.all() else replace(self, rows=self.rows[kept])

    def have_seats(self, wanted: Callable[[ScoredSeat], bool]) -> Flags:
        """Which rows are of some seats, aliases or metrics."""
        return flag_rows(self.rows["seat"], map(wanted, self.seats))

    def with_seats(self, wanted: Callable[[ScoredSeat], bool]) -> ScoreTable:
        """The rows of some seats, aliases or metrics."""
        return self.select(self.have_seats(wanted))

    def without_values(self, wanted: Callable[[ScoredSeat], bool]) -> ScoreTable:
        """All rows, but those of some seats have no value."""
        emptied = self.have_seats(wanted)
        if not emptied.any():
            return self
        rows = self.rows.copy()
        rows["value"][emptied] = NO_VALUE
        return replace(self, rows=rows)

    def in_blocks(self, names: Iterable[str]) -> ScoreTable:
        """The rows of some blocks."""
        wanted = set(names)
        return self.select(flag_rows(self.rows["block"], (name in wanted for name in self.blocks)))

    def used_seats(self) -> list[ScoredSeat]:
        """The seats, aliases and metrics that have rows."""
        return [self.seats[at] for at in np.unique(self.rows["seat"]).tolist()]


def flag_rows(places: Numbers, wanted: Iterable[bool]) -> Flags:
    """Which rows have a wanted place; `wanted`: by place."""
    chosen: Flags = np.fromiter(wanted, dtype=bool)
    found: Flags = chosen[places]
    return found


def find_starts(*columns: NDArray[Any]) -> Numbers:
    """Where rows begin that differ from the row before in one of these columns."""
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    differs = np.ones(len(columns[0]), dtype=bool)
    differs[1:] = False
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    found: Numbers = np.flatnonzero(differs)
    return found


def mean_by_group(values: Values, sizes: Numbers) -> Values:
    """The means of consecutive rows, rounded as `fmean` rounds them: sums are more precise than
    their values."""
    if not len(sizes):
        return values[:0]
    sums = np.add.reduceat(values.astype(np.longdouble), np.cumsum(sizes) - sizes).astype(float)
    found: Values = (sums.T / sizes).T
    return found
