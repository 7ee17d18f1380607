"""Reads the messages of matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NoReturn

from parley.match.record import RecordedCall
from parley.memory.interactions import NOT_TAKEN, RecordedMatch, RecordedReply
from parley.rules.pool import text_of
from parley.store.decoding import find_misfit
from parley.store.dialect import LARGEST
from parley.store.reader.calls import CallRows
from parley.store.reader.matches import MatchRows
from parley.store.reader.snapshot import Section, Snapshot
from parley.store.reader.violations import ViolationRows
from parley.store.tables import CALLS, ROUNDS
from parley.store.types import MatchRow
from parley.tables import shorten

REPLY = ("match", "round", "seat", "attempt", "content", "finish")
FIRST = ROUNDS.types("first")
REPLY_TYPES = CALLS.types(*REPLY)


class MessageRows(Section):
    """The messages of matches."""

    def __init__(
        self, snapshot: Snapshot, matches: MatchRows, calls: CallRows, violations: ViolationRows
    ) -> None:
        super().__init__(snapshot)
        self._matches, self._calls, self._violations = matches, calls, violations

    def of(self, number: int) -> list[dict[str, Any]]:
        """A match's messages in order; replies have the text of their call."""
        rows = self._snapshot.rows(
            "SELECT first, messages FROM rounds WHERE match = ? ORDER BY first", number
        )
        return self.decode(number, self._matches.find(number), self._calls.of(number), rows)

    def decode(
        self,
        number: int,
        match: MatchRow | None,
        calls: Iterable[RecordedCall],
        rows: Iterable[Sequence[Any]],
    ) -> list[dict[str, Any]]:
        """A match's messages in these rows."""
        what = f"the messages of match {number}"
        seats = set() if match is None else {seat.key for seat in match.seats}
        words = {
            (call.round, call.seat.key, call.attempt): text_of(call.reply.content) for call in calls
        }
        found = []
        for first, text in rows:
            self._snapshot.check((first,), FIRST, what)
            messages = self._snapshot.decode(text, Any, what)
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
            self._snapshot.refuse(misfit)
        wrong = (each for message in messages for each in [misfit_of(message, seats)] if each)
        self._snapshot.refuse(f"{what}: {next(wrong, 'they cannot be read')}")

    def recorded_matches(self, after: int = 0, last: int | None = None) -> Iterator[RecordedMatch]:
        """The messages and replies of every finished match with a number above `after`, up to
        `last`."""
        done = "state = 'done' AND number > ? AND number <= ?"
        span = after, LARGEST if last is None else last
        rounds = groupby(
            self._snapshot.rows(
                "SELECT match, first, messages FROM rounds JOIN matches m ON m.number = match "
                f"WHERE {done} ORDER BY match, first",
                *span,
            ),
            itemgetter(0),
        )
        calls = self._snapshot.rows(
            f"SELECT {', '.join(f'c.{name}' for name in REPLY)} FROM calls c "
            f"JOIN matches m ON m.number = match WHERE {done} "
            "ORDER BY match, c.round, seat, attempt",
            *span,
        )
        replies = {number: list(rows) for number, rows in groupby(calls, itemgetter(0))}
        not_taken: dict[int, set[tuple[int, str, int]]] = {}
        for each in self._violations.read(last if last == after + 1 else None):
            if each.match > after and each.outcome in NOT_TAKEN:
                place = each.round, each.seat.key, each.attempt
                not_taken.setdefault(each.match, set()).add(place)
        for number, rows in rounds:
            what = f"the messages of match {number}"
            messages = [
                message
                for _, _, text in rows
                for message in self._snapshot.decode(text, list[list[Any]], what)
            ]
            if any(len(message) != 6 for message in messages):
                self._snapshot.refuse(f"{what}: each message must have six fields")
            said = {}
            for row in replies.pop(number, ()):
                self._snapshot.check(row, REPLY_TYPES, f"a call of match {number}")
                _, round, seat, attempt, text, finish = row
                said[round, seat, attempt] = RecordedReply(text, finish)
            yield RecordedMatch(number, messages, said, frozenset(not_taken.get(number, ())))


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
