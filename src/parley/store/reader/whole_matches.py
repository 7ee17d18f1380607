"""Reads matches with their whole record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parley.store.call_rows import FIELDS
from parley.store.dialect import AT_ONCE, LARGEST, SMALLEST
from parley.store.reader.calls import CallRows, EffectRows
from parley.store.reader.matches import MATCH, MatchRows
from parley.store.reader.messages import MessageRows
from parley.store.reader.scores import ScoreRows
from parley.store.reader.snapshot import Section, Snapshot
from parley.store.reader.violations import NOTE, VIOLATION, NoteRows, ViolationRows
from parley.store.types import MatchRow, WholeMatch


class WholeMatches(Section):
    """The matches of a run, each with its whole record."""

    def __init__(
        self,
        snapshot: Snapshot,
        matches: MatchRows,
        calls: CallRows,
        messages: MessageRows,
        effects: EffectRows,
        scores: ScoreRows,
        violations: ViolationRows,
        notes: NoteRows,
    ) -> None:
        super().__init__(snapshot)
        self._matches, self._calls, self._messages = matches, calls, messages
        self._effects, self._scores = effects, scores
        self._violations, self._notes = violations, notes

    def of(self, match: MatchRow) -> WholeMatch:
        """One match with its whole record."""
        return next(self._read_page([match], (match.number, match.number)))

    def read(self) -> Iterator[WholeMatch]:
        """All matches, by number, each with its whole record. They are read in pages."""
        first = SMALLEST
        while page := list(
            map(
                self._matches.decode,
                self._snapshot.rows(
                    f"SELECT {', '.join(MATCH)} FROM matches WHERE number >= ? ORDER BY number "
                    "LIMIT ?",
                    first,
                    AT_ONCE,
                ),
            )
        ):
            last = page[-1].number
            yield from self._read_page(page, (page[0].number, last))
            if last == LARGEST:
                return
            first = last + 1

    def _read_page(self, page: Sequence[MatchRow], span: tuple[int, int]) -> Iterator[WholeMatch]:
        calls = self._snapshot.rows_by_match(
            f"SELECT match, {FIELDS} FROM calls WHERE match BETWEEN ? AND ? "
            "ORDER BY match, round, seat, attempt",
            span,
        )
        rounds = self._snapshot.rows_by_match(
            "SELECT match, first, messages FROM rounds WHERE match BETWEEN ? AND ? "
            "ORDER BY match, first",
            span,
        )
        effects = self._snapshot.rows_by_match(
            "SELECT match, round, number, request_digest, result FROM effects "
            "WHERE match BETWEEN ? AND ? ORDER BY match, round, number",
            span,
        )
        scores = self._snapshot.rows_by_match(
            "SELECT match, seat, metric, value FROM scores WHERE match BETWEEN ? AND ? "
            f"AND {self._dialect.not_indexed}judge = '' ORDER BY match, seat, metric",
            span,
        )
        violations = self._snapshot.rows_by_match(
            f"SELECT {', '.join(VIOLATION)} FROM violations "
            "WHERE match BETWEEN ? AND ? ORDER BY match, number",
            span,
        )
        notes = self._snapshot.rows_by_match(
            f"SELECT {', '.join(NOTE)} FROM notes WHERE match BETWEEN ? AND ? "
            "ORDER BY match, number",
            span,
        )
        for match in page:
            number = match.number
            said = [self._calls.decode(number, row[1:]) for row in calls.get(number, ())]
            yield WholeMatch(
                match,
                said,
                self._messages.decode(
                    number, match, said, (row[1:] for row in rounds.get(number, ()))
                ),
                self._effects.decode(number, (row[1:] for row in effects.get(number, ()))),
                self._scores.decode(scores.get(number, ())),
                [self._violations.decode(match.seats, row) for row in violations.get(number, ())],
                [self._notes.decode(row) for row in notes.get(number, ())],
            )
