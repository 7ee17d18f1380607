"""Reads the matches of a run, with their violations and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.plans.evolve_settings import PROBE
from parley.rules.pool import Seat
from parley.store.decoding import find_misfit
from parley.store.dialect import ENDED_MATCHES
from parley.store.reader.snapshot import Snapshot
from parley.store.tables import MATCHES, NOTES, SUMS, VIOLATIONS
from parley.store.types import MatchRow, NoteRow, RunRef, SeatingCount, ViolationRow
from parley.tables import shorten

MATCH = [each.name for each in MATCHES.columns if each.name not in (*SUMS, "digest")]
MATCH_TYPES = MATCHES.types(*MATCH)
SEATING = (*MATCHES.types("stage", "arm"), (str,), (int,))
NOTE = ("match", "round", "kind", "facts")
NOTE_TYPES = NOTES.types(*NOTE)
VIOLATION = ("match", "round", "seat", "attempt", "kind", "detail", "outcome")
VIOLATION_TYPES = VIOLATIONS.types(*VIOLATION)
NO_SEATS: frozenset[Seat] = frozenset()


class MatchReader(Snapshot):
    """Reads matches, violations and notes."""

    def __init__(self, ref: RunRef) -> None:
        super().__init__(ref)
        self._match_types: set[tuple[type, ...]] = set()  # of rows that were checked
        self._note_types: set[tuple[type, ...]] = set()

    def counts(self) -> dict[str, int]:
        """Matches by state."""
        return dict(self._rows("SELECT state, COUNT(*) FROM matches GROUP BY state"))

    def match(self, number: int) -> MatchRow | None:
        row = self._row(f"SELECT {', '.join(MATCH)} FROM matches WHERE number = ?", number)
        return None if row is None else self._match_from(row)

    def matches(self) -> Iterator[MatchRow]:
        """All matches known so far, by number."""
        rows = self._rows(f"SELECT {', '.join(MATCH)} FROM matches ORDER BY number")
        return map(self._match_from, rows)

    def _match_from(self, row: Any) -> MatchRow:
        number, block, item, repeat, seed, seats, unscored, *rest = row
        types = tuple(map(type, row))
        if types not in self._match_types:
            self._check(row, MATCH_TYPES, f"match {number}")
            self._match_types.add(types)
        cast = self._seatings.get(seats) or self._seating(seats, f"match {number}")
        fill = self._unscored_seats(unscored, f"match {number}") if unscored else NO_SEATS
        match = MatchRow(number, block, item, repeat, seed, cast, fill, *rest)
        if match.stage or match.arm:
            self._check_stage(match)
        return match

    def _check_stage(self, match: MatchRow) -> None:
        evolve = self.info.config.evolve
        arms = () if evolve is None else evolve.arms
        if match.stage < 1 or match.arm.removesuffix(PROBE) not in arms:
            self._damaged(
                f"match {match.number} is in stage {match.stage} of arm {shorten(match.arm)}, but "
                "the run has no such stage"
            )

    def ended_matches(self) -> Iterator[int]:
        """The numbers of the matches that have ended, in order."""
        rows = self._rows(f"SELECT number FROM matches WHERE {ENDED_MATCHES} ORDER BY number")
        return (number for (number,) in rows)

    def count_seatings(self) -> Iterator[SeatingCount]:
        """How often each seating was played, by stage, arm and item (or block)."""
        rows = self._rows(
            "SELECT seats, stage, arm, CASE WHEN item IS NULL THEN 'block ' || block "
            "ELSE 'item ' || item END AS place, COUNT(*) FROM matches "
            "GROUP BY 1, 2, 3, 4 ORDER BY 2, 3, 4"
        )
        for row in rows:
            seats, stage, arm, place, matches = row
            self._check(row[1:], SEATING, "a match")
            yield SeatingCount(stage, arm, place, self._seating(seats, "a match"), matches)

    def stages(self) -> list[tuple[int, str]]:
        """The stages and arms that the run has, in the order of their first matches."""
        rows = self._rows("SELECT stage, arm FROM matches GROUP BY 1, 2 ORDER BY MIN(number)")
        return list(rows)

    def stages_with_shared_tables(self) -> set[tuple[int, str]]:
        """The stages and arms in which several matches have the same block and repeat."""
        rows = self._rows(
            "SELECT DISTINCT stage, arm FROM (SELECT stage, arm FROM matches "
            "GROUP BY stage, arm, block, repeat HAVING COUNT(*) > 1) AS shared"
        )
        return set(rows)

    def violations(self, number: int | None = None) -> Iterator[ViolationRow]:
        """Violations of one match, or of all."""
        rows = self._rows(
            f"SELECT m.seats, {', '.join(f'v.{name}' for name in VIOLATION)} "
            "FROM violations v JOIN matches m ON v.match = m.number "
            + ("" if number is None else "WHERE v.match = ? ")
            + "ORDER BY v.match, v.number",
            *(() if number is None else (number,)),
        )
        for seats, *row in rows:
            yield self._violation_from(self._seating(seats, "a match with a violation"), row)

    def _violation_from(self, seats: Mapping[Seat, str], row: Sequence[Any]) -> ViolationRow:
        match, round, key, *rest = row
        what = f"a violation in match {match}"
        self._check(row, VIOLATION_TYPES, what)
        seat, alias = self._alias(seats, key, what)
        return ViolationRow(match, alias, round, seat, *rest)

    def notes(self, kind: str | None = None) -> Iterator[NoteRow]:
        """Notes of one kind, or all, by match."""
        where = "" if kind is None else "WHERE kind = ? "
        return self._notes(f"{where}ORDER BY match, number", *(() if kind is None else (kind,)))

    def notes_of(self, number: int) -> list[NoteRow]:
        return list(self._notes("WHERE match = ? ORDER BY number", number))

    def _notes(self, which: str, *values: Any) -> Iterator[NoteRow]:
        for row in self._rows(f"SELECT {', '.join(NOTE)} FROM notes {which}", *values):
            yield self._note_from(row)

    def _note_from(self, row: Sequence[Any]) -> NoteRow:
        match, round, kind, facts = row
        types = tuple(map(type, row))
        if types not in self._note_types:
            self._check(row, NOTE_TYPES, f"a note of match {match}")
            self._note_types.add(types)
        found = self._json(facts, Any, f"a note of match {match}")
        if type(found) is not dict:
            self._damaged(find_misfit(found, dict[str, Any], f"a note of match {match}"))
        return NoteRow(match, round, kind, found)
