"""How the workers of a run share its limits: each holds a part, which the store has granted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

CALLS, USD = "calls", "usd"  # names of limits
SLACK = 1e-9  # for sums of many small numbers


class GrantRequest(NamedTuple):
    """What one worker needs of a limit. All amounts are totals since it joined."""

    limit: float | None  # of the whole run; None: no limit, but the amounts are recorded
    before: float  # what the run had spent before it had workers
    spent: float  # what cannot come back any more
    stuck: float  # what is reserved for calls that go on only if this request is granted
    used: float  # what is spent, or reserved for calls in progress
    needed: float  # what must be granted
    most: float  # what may be granted, to ask less often


class Holding(NamedTuple):
    """What one worker has of a limit: totals since it joined."""

    spent: float
    used: float


class GrantAnswer(NamedTuple):
    """What a worker holds after it has asked, by limit."""

    is_enough: bool
    amounts: Mapping[str, float]
    others: Mapping[str, float]  # what others hold or have spent, also before there were workers
    may_grow: bool  # refused, but other workers may give back what is missing


class SlotShare(NamedTuple):
    """How many calls at a time a worker may make."""

    fair: int  # how many may be in progress; further calls wait
    held: int  # more than that if calls in progress have yet to end


class Grants(Protocol):
    """The parts of a run's limits that one worker holds.

    All workers together never hold more than a limit. What a worker has been granted is durable
    before it is used: if the worker dies, all of it counts as spent.
    """

    async def ask(self, requests: Mapping[str, GrantRequest]) -> GrantAnswer:
        """Ask for parts of several limits: all of them or none. A worker that is refused gives back
        everything that it does not use."""

    async def give_back(self, holdings: Mapping[str, Holding], all: bool) -> Mapping[str, float]:
        """Say what is spent, and give back what is not used: all of it, or only what other workers
        wait for. Returns what this worker holds then."""

    async def share_slots(self, name: str, limit: int, wanted: int, used: int) -> SlotShare:
        """Say how many calls at a time this worker wants to make, and get its fair share."""

    async def reserve_rate(
        self, name: str, rate: float, amount: float, credit: float, correction: float = 0.0
    ) -> float:
        """Reserve an amount of a rate per second for this worker alone. Returns in how many seconds
        the amount begins; it began in the past if some of the rate was not used, up to `credit`
        seconds ago. `correction`: how much more (or less) was used of earlier amounts."""
