"""Reads the calls of a run, and the results of its effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from parley.match.record import RecordedCall
from parley.store.call_rows import COLUMNS, FIELDS, call_from
from parley.store.dialect import ENDED_MATCHES
from parley.store.reader.snapshot import Section
from parley.store.tables import CALLS, EFFECTS, MATCHES
from parley.store.types import RecentCall

CALL = [column.types for column in COLUMNS]
EFFECT = EFFECTS.types("round", "number", "request_digest", "result")
REPLY = CALLS.types("match", "seat", "content")
RECENT = (*CALLS.types("match", "seat", "round", "latency", "at"), *MATCHES.types("ended"))


class CallRows(Section):
    """The calls of a run."""

    def of(self, number: int) -> list[RecordedCall]:
        """A match's calls by round, seat and attempt."""
        rows = self._snapshot.rows(
            f"SELECT {FIELDS} FROM calls WHERE match = ? ORDER BY round, seat, attempt", number
        )
        return [self.decode(number, row) for row in rows]

    def decode(self, match: int, row: Sequence[Any]) -> RecordedCall:
        """A match's call in a row."""
        what = f"a call of match {match}"
        self._snapshot.check(row, CALL, what)
        self._snapshot.seat(row[1], what)
        try:
            return call_from(row)
        except (ValueError, TypeError) as wrong:
            self._snapshot.refuse(f"{what} cannot be read: {wrong}")

    def replies_in(self, roles: Collection[str]) -> Iterator[tuple[int, str, str, str]]:
        """(match, role, alias, text) for every reply of these roles in matches that have ended, by
        match."""
        rows = self._snapshot.rows(
            "SELECT match, seats, seat, content FROM calls c JOIN matches m ON c.match = m.number "
            f"WHERE {ENDED_MATCHES} ORDER BY match"
        )
        known: dict[tuple[str, str], tuple[str, str]] = {}
        for row in rows:
            match, seats, key, content = row
            if type(content) is not str or (seats, key) not in known:
                what = f"a call of match {match}"
                self._snapshot.check((match, key, content), REPLY, what)
                seat, alias = self._snapshot.alias_in(
                    self._snapshot.seating(seats, what), key, what
                )
                known[seats, key] = seat.role, alias
            role, alias = known[seats, key]
            if role in roles:
                yield match, role, alias, content

    def recent(self, most: int) -> list[RecentCall]:
        """The calls that were recorded last, the newest first; copied ones do not count. The work
        does not grow with the run."""
        rows = self._snapshot.rows(
            "SELECT m.seats, c.match, c.seat, c.round, c.latency, c.at, m.ended FROM calls c "
            "JOIN matches m ON m.number = c.match WHERE c.copied IS NULL "
            "ORDER BY c.id DESC LIMIT ?",
            most,
        )
        found = []
        for seats, *row in rows:
            match, key, *rest = row
            what = f"a call of match {match}"
            self._snapshot.check(row, RECENT, what)
            seat, alias = self._snapshot.alias_in(self._snapshot.seating(seats, what), key, what)
            found.append(RecentCall(match, seat, alias, *rest))
        return found

    def count(self) -> int:
        """The number of replies on record, without copied ones."""
        return int(self._snapshot.row("SELECT COUNT(*) FROM calls WHERE copied IS NULL")[0])


class EffectRows(Section):
    """The results of the effects of a run."""

    def of(self, number: int) -> dict[tuple[int, int], tuple[bytes, Any]]:
        """Results of a match's effects (programs run, references asked), by round and number."""
        rows = self._snapshot.rows(
            "SELECT round, number, request_digest, result FROM effects WHERE match = ?", number
        )
        return self.decode(number, rows)

    def decode(
        self, number: int, rows: Iterable[Sequence[Any]]
    ) -> dict[tuple[int, int], tuple[bytes, Any]]:
        """A match's effects in these rows."""
        found = {}
        for row in rows:
            self._snapshot.check(row, EFFECT, f"an effect of match {number}")
            round, n, digest, result = row
            found[round, n] = (
                digest,
                self._snapshot.decode(result, Any, f"an effect of match {number}"),
            )
        return found

    def verdict_kinds(self) -> Counter[str]:
        """How often each kind of verdict on programs occurs, in matches that have ended."""
        rows = self._snapshot.rows(
            "SELECT match, result FROM effects e JOIN matches m ON e.match = m.number "
            f"WHERE {ENDED_MATCHES}"
        )
        verdicts = (
            self._snapshot.decode(text, Any, f"an effect of match {match}") for match, text in rows
        )
        return Counter(
            str(each["guarantee"])
            for each in verdicts
            if isinstance(each, dict) and "guarantee" in each
        )
