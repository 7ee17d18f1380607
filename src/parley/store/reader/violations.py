"""Reads the violations of a run, and the notes that rules wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.rules.pool import Seat
from parley.store.decoding import find_misfit
from parley.store.reader.snapshot import Section, Snapshot
from parley.store.tables import NOTES, VIOLATIONS
from parley.store.types import NoteRow, ViolationRow

NOTE = ("match", "round", "kind", "facts")
NOTE_TYPES = NOTES.types(*NOTE)
VIOLATION = ("match", "round", "seat", "attempt", "kind", "detail", "outcome")
VIOLATION_TYPES = VIOLATIONS.types(*VIOLATION)


class ViolationRows(Section):
    """The replies that broke the required format or a rule."""

    def read(self, number: int | None = None) -> Iterator[ViolationRow]:
        """Violations of one match, or of all."""
        rows = self._snapshot.rows(
            f"SELECT m.seats, {', '.join(f'v.{name}' for name in VIOLATION)} "
            "FROM violations v JOIN matches m ON v.match = m.number "
            + ("" if number is None else "WHERE v.match = ? ")
            + "ORDER BY v.match, v.number",
            *(() if number is None else (number,)),
        )
        for seats, *row in rows:
            yield self.decode(self._snapshot.seating(seats, "a match with a violation"), row)

    def decode(self, seats: Mapping[Seat, str], row: Sequence[Any]) -> ViolationRow:
        """The violation in a row. `seats`: of its match."""
        match, round, key, *rest = row
        what = f"a violation in match {match}"
        self._snapshot.check(row, VIOLATION_TYPES, what)
        seat, alias = self._snapshot.alias_in(seats, key, what)
        return ViolationRow(match, alias, round, seat, *rest)


class NoteRows(Section):
    """The notes that rules wrote."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._types: set[tuple[type, ...]] = set()  # of rows that were checked

    def read(self, kind: str | None = None) -> Iterator[NoteRow]:
        """Notes of one kind, or all, by match."""
        where = "" if kind is None else "WHERE kind = ? "
        return self._select(f"{where}ORDER BY match, number", *(() if kind is None else (kind,)))

    def of(self, number: int) -> list[NoteRow]:
        return list(self._select("WHERE match = ? ORDER BY number", number))

    def _select(self, which: str, *values: Any) -> Iterator[NoteRow]:
        for row in self._snapshot.rows(f"SELECT {', '.join(NOTE)} FROM notes {which}", *values):
            yield self.decode(row)

    def decode(self, row: Sequence[Any]) -> NoteRow:
        """The note in a row."""
        match, round, kind, facts = row
        types = tuple(map(type, row))
        if types not in self._types:
            self._snapshot.check(row, NOTE_TYPES, f"a note of match {match}")
            self._types.add(types)
        found = self._snapshot.decode(facts, Any, f"a note of match {match}")
        if type(found) is not dict:
            self._snapshot.refuse(find_misfit(found, dict[str, Any], f"a note of match {match}"))
        return NoteRow(match, round, kind, found)
