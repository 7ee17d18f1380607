"""What is kept of a run, and how it is read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from parley.match.match import Outcome
from parley.match.record import Record
from parley.plans import MatchSpec
from parley.rules.pool import Seat


class Journal(Protocol):
    """Keeps a run: a reply is durable before anybody uses it."""

    notice: str  # what the person should know about the store

    async def reconfigure(self, config: bytes) -> None:
        """Keep a configuration in which a bound was raised."""

    async def spent(self, calls: int, usd: float | None) -> None:
        """Keep how many calls have left at the most, and what they may have cost."""

    async def lost(self, requests: Mapping[str, Mapping[str, int]]) -> None:
        """Keep how many requests may have been paid without a reply, by alias and role."""

    async def price(self, prices: Sequence[Mapping[str, Any]]) -> None:
        """Keep the prices that the run was played at."""

    async def plan(self, specs: Sequence[MatchSpec]) -> None:
        """Make matches known; those already known stay as they are."""

    def claim(self, number: int) -> Record:
        """Take a match to play it; what is already on record for it comes along."""

    async def heartbeat(self) -> None:
        """Say that this process still plays; raises if another has taken over."""

    async def finish(self, number: int, outcome: Outcome) -> None:
        """End a match, once."""

    async def fail(self, number: int, reason: str) -> None:
        """Leave a match unfinished, saying why."""

    async def end(self, state: str, status: str | None, reason: str) -> None:
        """Say how the run stands."""

    async def close(self) -> None: ...


class Score(NamedTuple):
    """One seat's value of one metric in one match."""

    match: int
    block: str
    seat: Seat
    alias: str
    metric: str
    value: float | None
    idle: bool = False  # the seat only filled the table: its score does not count
