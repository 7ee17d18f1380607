"""The record of a match: every reply, with a digest of the view that its seat was shown."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, NamedTuple, Protocol

from parley.masking.spans import Span
from parley.match.protocol import Reply
from parley.rules.pool import Message, Seat


class RecordedCall(NamedTuple):
    """One recorded reply, with a digest of the view that it answers, and the names in it that other
    seats do not read."""

    round: int
    seat: Seat
    attempt: int
    view_digest: bytes
    reply: Reply
    at: float
    masked: tuple[Span, ...] = ()


class Record(Protocol):
    """Stores the replies of a match. Once `append` has returned, the reply is never lost."""

    def call(self, round: int, seat: Seat, attempt: int) -> RecordedCall | None: ...

    def append(self, call: RecordedCall) -> Awaitable[None]: ...

    def effect(self, round: int, number: int) -> tuple[bytes, Any] | None: ...

    async def append_effect(
        self, round: int, number: int, request_digest: bytes, result: Any
    ) -> None: ...

    def circulate(self, messages: list[Message], first: int) -> None:
        """Take over the messages of a closed round, numbered from `first` on; the match no longer
        keeps them."""


class MemoryRecord:
    """A record in memory, for tests and forecasts."""

    def __init__(self) -> None:
        self.calls: dict[tuple[int, Seat, int], RecordedCall] = {}
        self.effects: dict[tuple[int, int], tuple[bytes, Any]] = {}
        self.messages: list[Message] = []

    def call(self, round: int, seat: Seat, attempt: int) -> RecordedCall | None:
        return self.calls.get((round, seat, attempt))

    async def append(self, call: RecordedCall) -> None:
        self.calls[call.round, call.seat, call.attempt] = call

    def effect(self, round: int, number: int) -> tuple[bytes, Any] | None:
        return self.effects.get((round, number))

    async def append_effect(
        self, round: int, number: int, request_digest: bytes, result: Any
    ) -> None:
        self.effects[round, number] = request_digest, result

    def circulate(self, messages: list[Message], first: int) -> None:
        self.messages += messages
