"""A match's record that tells the desk when a person's answer is on record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from parley.match.match import Match
from parley.match.record import Record, RecordedCall
from parley.rules.pool import Message, Seat

if TYPE_CHECKING:
    from parley.participants._desk import Desk


class ConfirmedRecord:
    """Passes everything on, and confirms each reply to the desk once it is stored."""

    def __init__(self, record: Record, desk: Desk, seats: Mapping[Seat, str]) -> None:
        self._record, self._desk, self._seats = record, desk, seats

    def call(self, round: int, seat: Seat, attempt: int) -> RecordedCall | None:
        return self._record.call(round, seat, attempt)

    async def append(self, call: RecordedCall) -> None:
        await self._record.append(call)
        self._desk.confirm(self._seats[call.seat], (call.seat, call.round, call.attempt))

    def effect(self, round: int, number: int) -> tuple[bytes, Any] | None:
        return self._record.effect(round, number)

    async def append_effect(self, round: int, number: int, digest: bytes, result: Any) -> None:
        await self._record.append_effect(round, number, digest, result)

    def circulate(self, messages: list[Message], first: int) -> None:
        self._record.circulate(messages, first)


def find_last_words(match: Match, seats: Mapping[Seat, str]) -> dict[str, str]:
    """By alias, what was said to its seats after their last answer."""
    found: dict[str, list[str]] = {}
    for seat, alias in seats.items():
        found.setdefault(alias, []).extend(match.pool.conversations[seat].waiting)
    return {alias: "\n\n".join(filter(None, words)) for alias, words in found.items()}
