"""Reads the matches of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson

from parley.plans.evolve_settings import PROBE
from parley.rules.pool import Seat
from parley.store.dialect import ENDED_MATCHES
from parley.store.reader.snapshot import Section, Snapshot
from parley.store.tables import MATCHES, SUMS
from parley.store.types import MatchRow, SeatingCount
from parley.tables import shorten

if TYPE_CHECKING:
    from parley.store.match_search import FoundMatches, MatchSearch

MATCH = [each.name for each in MATCHES.columns if each.name not in (*SUMS, "digest")]
MATCH_TYPES = MATCHES.types(*MATCH)
SEATING = (*MATCHES.types("stage", "arm"), (str,), (int,))
NO_SEATS: frozenset[Seat] = frozenset()


class MatchRows(Section):
    """The matches of a run, without what was said."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._types: set[tuple[type, ...]] = set()  # of rows that were checked

    def counts(self) -> dict[str, int]:
        """Matches by state."""
        return dict(self._snapshot.rows("SELECT state, COUNT(*) FROM matches GROUP BY state"))

    def find(self, number: int) -> MatchRow | None:
        row = self._snapshot.row(f"SELECT {', '.join(MATCH)} FROM matches WHERE number = ?", number)
        return None if row is None else self.decode(row)

    def read(self) -> Iterator[MatchRow]:
        """All matches known so far, by number."""
        rows = self._snapshot.rows(f"SELECT {', '.join(MATCH)} FROM matches ORDER BY number")
        return map(self.decode, rows)

    def decode(self, row: Any) -> MatchRow:
        """The match in a row."""
        number, block, item, repeat, seed, seats, unscored, *rest = row
        types = tuple(map(type, row))
        if types not in self._types:
            self._snapshot.check(row, MATCH_TYPES, f"match {number}")
            self._types.add(types)
        cast = self._snapshot.seating(seats, f"match {number}")
        fill = self._snapshot.unscored_seats(unscored, f"match {number}") if unscored else NO_SEATS
        match = MatchRow(number, block, item, repeat, seed, cast, fill, *rest)
        if match.stage or match.arm:
            self._check_stage(match)
        return match

    def _check_stage(self, match: MatchRow) -> None:
        evolve = self._snapshot.info.config.evolve
        arms = () if evolve is None else evolve.arms
        if match.stage < 1 or match.arm.removesuffix(PROBE) not in arms:
            self._snapshot.refuse(
                f"match {match.number} is in stage {match.stage} of arm {shorten(match.arm)}, but "
                "the run has no such stage"
            )

    def ended(self) -> Iterator[int]:
        """The numbers of the matches that have ended, in order."""
        rows = self._snapshot.rows(
            f"SELECT number FROM matches WHERE {ENDED_MATCHES} ORDER BY number"
        )
        return (number for (number,) in rows)

    def count_seatings(self) -> Iterator[SeatingCount]:
        """How often each seating was played, by stage, arm and item (or block)."""
        rows = self._snapshot.rows(
            "SELECT seats, stage, arm, CASE WHEN item IS NULL THEN 'block ' || block "
            "ELSE 'item ' || item END AS place, COUNT(*) FROM matches "
            "GROUP BY 1, 2, 3, 4 ORDER BY 2, 3, 4"
        )
        for row in rows:
            seats, stage, arm, place, matches = row
            self._snapshot.check(row[1:], SEATING, "a match")
            yield SeatingCount(stage, arm, place, self._snapshot.seating(seats, "a match"), matches)

    def stages(self) -> list[tuple[int, str]]:
        """The stages and arms that the run has, in the order of their first matches."""
        rows = self._snapshot.rows(
            "SELECT stage, arm FROM matches GROUP BY 1, 2 ORDER BY MIN(number)"
        )
        return list(rows)

    def stages_with_shared_tables(self) -> set[tuple[int, str]]:
        """The stages and arms in which several matches have the same block and repeat."""
        rows = self._snapshot.rows(
            "SELECT DISTINCT stage, arm FROM (SELECT stage, arm FROM matches "
            "GROUP BY stage, arm, block, repeat HAVING COUNT(*) > 1) AS shared"
        )
        return set(rows)

    def search(self, wanted: MatchSearch) -> FoundMatches:
        """One page of the matches that pass some filters, in an order. The work for a page is
        bounded: a page may end before it is full, and the next one goes on."""
        from parley.store.match_search import FoundMatch, FoundMatches  # late: few commands search
        from parley.store.reader.match_places import PlaceFinder

        seats = self._snapshot.info.identity["seats"]
        finder = PlaceFinder(self._snapshot.rows, self._dialect, wanted, seats)
        found = finder.find()
        places = found.places
        further = (found.end or places[-1]) if found.more else None
        back = finder.way_back(places)
        if wanted.before is not None:
            places, back, further = places[::-1], further, back
        rows = self._read_found([place.number for place in places])
        listed = (FoundMatch(rows[at.number][0], at, *rows[at.number][1]) for at in places)
        return FoundMatches(tuple(listed), back, further, found.looked_at)

    def _read_found(self, numbers: list[int]) -> dict[int, tuple[MatchRow, Any]]:
        """The matches with these numbers, each with what its record adds up to."""
        columns = ", ".join(f"m.{name}" for name in (*MATCH, *SUMS))
        found = {}
        for row in self._snapshot.rows(
            f"SELECT {columns} FROM {self._dialect.chosen} "
            "CROSS JOIN matches m WHERE m.number = chosen.value",
            orjson.dumps(numbers).decode(),
        ):
            match, sums = self.decode(row[: len(MATCH)]), row[len(MATCH) :]
            self._snapshot.check(sums, MATCHES.types(*SUMS), f"match {row[0]}")
            found[match.number] = match, sums
        return found
