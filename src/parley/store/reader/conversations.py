"""Reads the messages of matches, and matches with their whole record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NoReturn

from parley.match.record import RecordedCall
from parley.memory.interactions import NOT_TAKEN, RecordedMatch, RecordedReply
from parley.rules.pool import text_of
from parley.store.call_rows import FIELDS
from parley.store.decoding import find_misfit
from parley.store.dialect import AT_ONCE, LARGEST, SMALLEST
from parley.store.reader.calls import CallReader
from parley.store.reader.matches import MATCH, NOTE, VIOLATION, MatchReader
from parley.store.reader.scores import ScoreReader
from parley.store.tables import CALLS, ROUNDS
from parley.store.types import MatchRow, WholeMatch
from parley.tables import shorten

REPLY = ("match", "round", "seat", "attempt", "content", "finish")
FIRST = ROUNDS.types("first")
REPLY_TYPES = CALLS.types(*REPLY)


class ConversationReader(MatchReader, ScoreReader, CallReader):
    """Reads messages and whole matches."""

    def messages(self, number: int) -> list[dict[str, Any]]:
        """A match's messages in order; replies have the text of their call."""
        rows = self._rows(
            "SELECT first, messages FROM rounds WHERE match = ? ORDER BY first", number
        )
        return self._messages_from(number, self.match(number), self.calls(number), rows)

    def _messages_from(
        self,
        number: int,
        match: MatchRow | None,
        calls: Iterable[RecordedCall],
        rows: Iterable[Sequence[Any]],
    ) -> list[dict[str, Any]]:
        what = f"the messages of match {number}"
        seats = set() if match is None else {seat.key for seat in match.seats}
        words = {
            (call.round, call.seat.key, call.attempt): text_of(call.reply.content) for call in calls
        }
        found = []
        for first, text in rows:
            self._check((first,), FIRST, what)
            messages = self._json(text, Any, what)
            if not isinstance(messages, list) or not all(is_message(m, seats) for m in messages):
                self._refuse_messages(messages, seats, what)
            for n, message in enumerate(messages, first):
                round, kind, sender, audience, content, attempt = message
                said = words.get((round, sender, attempt)) if kind == "reply" else content
                facts = {
                    "number": n,
                    "round": round,
                    "kind": kind,
                    "sender": sender,
                    "audience": audience,
                }
                found.append({**facts, "content": said, "attempt": attempt})
        return found

    def _refuse_messages(self, messages: Any, seats: set[str], what: str) -> NoReturn:
        """Say what is wrong with the messages of a match."""
        if misfit := find_misfit(messages, list[list[Any]], what):
            self._damaged(misfit)
        wrong = (each for message in messages for each in [misfit_of(message, seats)] if each)
        self._damaged(f"{what}: {next(wrong, 'they cannot be read')}")

    def recorded_matches(self, after: int = 0, last: int | None = None) -> Iterator[RecordedMatch]:
        """The messages and replies of every finished match with a number above `after`, up to
        `last`."""
        done = "state = 'done' AND number > ? AND number <= ?"
        span = after, LARGEST if last is None else last
        rounds = groupby(
            self._rows(
                "SELECT match, first, messages FROM rounds JOIN matches m ON m.number = match "
                f"WHERE {done} ORDER BY match, first",
                *span,
            ),
            itemgetter(0),
        )
        calls = self._rows(
            f"SELECT {', '.join(f'c.{name}' for name in REPLY)} FROM calls c "
            f"JOIN matches m ON m.number = match WHERE {done} "
            "ORDER BY match, c.round, seat, attempt",
            *span,
        )
        replies = {number: list(rows) for number, rows in groupby(calls, itemgetter(0))}
        not_taken: dict[int, set[tuple[int, str, int]]] = {}
        for each in self.violations(last if last == after + 1 else None):
            if each.match > after and each.outcome in NOT_TAKEN:
                place = each.round, each.seat.key, each.attempt
                not_taken.setdefault(each.match, set()).add(place)
        for number, rows in rounds:
            what = f"the messages of match {number}"
            messages = [
                message
                for _, _, text in rows
                for message in self._json(text, list[list[Any]], what)
            ]
            if any(len(message) != 6 for message in messages):
                self._damaged(f"{what}: each message must have six fields")
            said = {}
            for row in replies.pop(number, ()):
                self._check(row, REPLY_TYPES, f"a call of match {number}")
                _, round, seat, attempt, text, finish = row
                said[round, seat, attempt] = RecordedReply(text, finish)
            yield RecordedMatch(number, messages, said, frozenset(not_taken.get(number, ())))

    def whole_match(self, match: MatchRow) -> WholeMatch:
        """One match with its whole record."""
        return next(self._whole_page([match], (match.number, match.number)))

    def whole_matches(self) -> Iterator[WholeMatch]:
        """All matches, by number, each with its whole record. They are read in pages."""
        first = SMALLEST
        while page := list(
            map(
                self._match_from,
                self._rows(
                    f"SELECT {', '.join(MATCH)} FROM matches WHERE number >= ? ORDER BY number "
                    "LIMIT ?",
                    first,
                    AT_ONCE,
                ),
            )
        ):
            last = page[-1].number
            yield from self._whole_page(page, (page[0].number, last))
            if last == LARGEST:
                return
            first = last + 1

    def _whole_page(self, page: Sequence[MatchRow], span: tuple[int, int]) -> Iterator[WholeMatch]:
        calls = self._by_match(
            f"SELECT match, {FIELDS} FROM calls WHERE match BETWEEN ? AND ? "
            "ORDER BY match, round, seat, attempt",
            span,
        )
        rounds = self._by_match(
            "SELECT match, first, messages FROM rounds WHERE match BETWEEN ? AND ? "
            "ORDER BY match, first",
            span,
        )
        effects = self._by_match(
            "SELECT match, round, number, request_digest, result FROM effects "
            "WHERE match BETWEEN ? AND ? ORDER BY match, round, number",
            span,
        )
        scores = self._by_match(
            "SELECT match, seat, metric, value FROM scores WHERE match BETWEEN ? AND ? "
            f"AND {self.dialect.not_indexed}judge = '' ORDER BY match, seat, metric",
            span,
        )
        violations = self._by_match(
            f"SELECT {', '.join(VIOLATION)} FROM violations "
            "WHERE match BETWEEN ? AND ? ORDER BY match, number",
            span,
        )
        notes = self._by_match(
            f"SELECT {', '.join(NOTE)} FROM notes WHERE match BETWEEN ? AND ? "
            "ORDER BY match, number",
            span,
        )
        for match in page:
            number = match.number
            said = [self._call_from(number, row[1:]) for row in calls.get(number, ())]
            yield WholeMatch(
                match,
                said,
                self._messages_from(
                    number, match, said, (row[1:] for row in rounds.get(number, ()))
                ),
                self._effects_from(number, (row[1:] for row in effects.get(number, ()))),
                self._scores_from(scores.get(number, ())),
                [self._violation_from(match.seats, row) for row in violations.get(number, ())],
                [self._note_from(row) for row in notes.get(number, ())],
            )


def is_message(message: Any, seats: set[str]) -> bool:
    """Whether a recorded message is valid. A run may have very many, so this is fast."""
    if type(message) is not list or len(message) != 6:
        return False
    round, kind, sender, audience, content, attempt = message
    return (
        type(round) is type(attempt) is int
        and type(kind) is str
        and (kind != "reply" if sender is None else type(sender) is str and sender in seats)
        and type(audience) is list
        and all(type(key) is str and key in seats for key in audience)
        and (kind == "reply" or type(content) is str)
    )


def misfit_of(message: list[Any], seats: set[str]) -> str:
    """What is wrong with a recorded message; empty if it is valid."""
    if len(message) != 6:
        return f"{shorten(message)} is not a message"
    round, kind, sender, audience, content, attempt = message
    shape = {"round": round, "kind": kind, "sender": sender or "", "audience": audience}
    shape["attempt"] = attempt
    kinds = {"round": int, "kind": str, "audience": list[str], "attempt": int, "sender": str}
    for name, value in shape.items():
        if wrong := find_misfit(value, kinds[name], name):
            return wrong
    strangers = {*audience, *([sender] if sender is not None else [])} - seats
    if strangers or (kind == "reply" and sender is None):
        return (
            f"{shorten(sender if sender not in seats else min(strangers))} has no seat in the match"
        )
    if kind != "reply" and not isinstance(content, str):
        return f"the content must be a string, not {shorten(content)}"
    return ""
