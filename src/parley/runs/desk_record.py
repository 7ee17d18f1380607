"""A match's record that tells the desk when a person's answer is on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parley.match.match import Match, Outcome
from parley.match.record import Record, RecordedCall
from parley.rules.pool import Message, Seat
from parley.rules.task import Metric
from parley.tables import format_number

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

    async def append_effect(
        self, round: int, number: int, request_digest: bytes, result: Any
    ) -> None:
        await self._record.append_effect(round, number, request_digest, result)

    def circulate(self, messages: list[Message], first: int) -> None:
        self._record.circulate(messages, first)


def find_last_words(match: Match, seats: Mapping[Seat, str]) -> dict[str, str]:
    """By alias, what was said to its seats after their last answer."""
    found: dict[str, list[str]] = {}
    for seat, alias in seats.items():
        found.setdefault(alias, []).extend(match.pool.conversations[seat].waiting)
    return {alias: "\n\n".join(filter(None, words)) for alias, words in found.items()}


def describe_scores(
    outcome: Outcome, seats: Mapping[Seat, str], metrics: Sequence[Metric]
) -> dict[str, str]:
    """By alias, the scores of its own seats in words. Scores of single rounds are left out."""
    found: dict[str, list[str]] = {}
    for seat, alias in seats.items():
        scores = outcome.scores.get(seat, {})
        for metric in metrics:
            value = scores.get(metric.name)
            if value is not None and metric.round is None:
                words = [metric.name.replace("_", " "), format_number(value, metric.digits)]
                found.setdefault(alias, []).append(" ".join(filter(None, [*words, metric.unit])))
    return {alias: ", ".join(each) for alias, each in found.items()}
