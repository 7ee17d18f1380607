"""Participants at their places: counted, limited, and left alone once they cannot answer or nothing
new may be asked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING

from parley.errors import ParticipantError, Refused, Rejected
from parley.match.protocol import Participant, Reply
from parley.participants._registry import Limits
from parley.providers._meter import METER, Meter
from parley.rules.pool import Seat, View
from parley.runs.rate_limits import Pace

if TYPE_CHECKING:
    from parley.runs.budget import Budget, Call
from parley.runs.progress import Brake, Tally

# What a match is told while calls of it wait for an endpoint that is down: one more, or one less.
WAITS: ContextVar[Callable[[int], None]] = ContextVar("waits", default=lambda more: None)
FAILURES = 3  # in a row, after which a participant is not asked any more


class Errand(Meter):
    """One call of a participant, for whoever sends its requests."""

    __slots__ = ("_call", "_match", "_open", "_placed", "_resting", "_role", "_tokens")

    def __init__(
        self, placed: Placed, seat: Seat, tokens: float = 0.0, call: Call | None = None
    ) -> None:
        self._placed, self._role, self._tokens, self._call = placed, seat.role, tokens, call
        self._open = False  # a request has left, and nobody knows yet what became of it
        self._resting, self._match = False, WAITS.get()

    async def turn(self) -> None:
        await self._placed.pace.turn(self._tokens)

    async def leaves(self) -> None:
        if self._call is not None:
            await self._call.leaves()
        self._placed.sent += 1
        self._open = True

    def rests(self, waits: bool) -> None:
        if waits != self._resting:
            self._resting = waits
            more = 1 if waits else -1
            self._placed.resting += more
            self._match(more)

    def refused(self, fault: str = "") -> None:
        self._open = False
        if self._call is not None:
            self._call.refused(fault)

    def lost(self, fault: str = "") -> None:
        self._open = False
        self._placed.lost[self._role] += 1
        if self._call is not None:
            self._call.lost(fault)

    def over(self) -> None:
        """The call brought no reply: what it has sent last may have been paid all the same."""
        self._placed.lost[self._role] += self._open


class Placed:
    """A participant under its alias: so many calls at a time, and none once it has proved unable to
    answer."""

    def __init__(
        self,
        alias: str,
        participant: Participant,
        limits: Limits,
        tally: Tally,
        brake: Brake,
        budget: Budget | None = None,
    ) -> None:
        self.alias, self.participant, self.privy = alias, participant, participant.privy
        self._tally, self._brake, self._budget = tally, brake, budget
        self.pace, self.sent, self.resting = Pace(limits), 0, 0
        # requests that may have been paid without a reply, by role
        self.lost: Counter[str] = Counter()
        self._called = 0
        # Who tells of every request is counted and kept to its pace there, others are when they are
        # asked.
        self._tells = getattr(participant, "tells", False)
        self.reply = self._bounded if limits.any or budget is not None else self._asked
        self._failures = 0
        self._down: Refused | None = None  # why it is not asked any more
        self._since = tally.waiting.setdefault(alias, {})

    async def _bounded(self, view: View) -> Reply | str:
        """Ask within the limits of the model and the bounds of the run."""
        async with self.pace.places or nullcontext():
            self._brake.gate()  # it may have been pulled while this call waited for its place
            tokens = self.pace.supposed(view)
            if not self._tells:
                await self.pace.turn(tokens)
                self._brake.gate()
            asked = (
                self._asked(view, Errand(self, view.seat, tokens))
                if self._budget is None
                else self._paid(view, tokens)
            )
            reply = await asked
            self.pace.came(tokens, reply)
            return reply

    async def _paid(self, view: View, tokens: float) -> Reply | str:
        assert self._budget is not None
        if self._down is not None:
            raise self._down.with_message(str(self._down))
        call = await self._budget.leave(self.alias, view, self._tells)
        try:
            reply = await self._asked(view, Errand(self, view.seat, tokens, call))
        except BaseException as fault:
            self._budget.failed(call, fault)
            raise
        self._budget.came(call, reply)
        return reply

    @property
    def left(self) -> int:
        """How many requests have left; who does not tell of them is counted by calls."""
        return self.sent if self._tells else self._called

    async def _asked(self, view: View, errand: Errand | None = None) -> Reply | str:
        if self._down is not None:
            raise self._down.with_message(str(self._down))
        self._called += 1
        errand = errand or Errand(self, view.seat)
        METER.set(errand)
        self._since[id(view)] = time.monotonic()
        try:
            reply = await self.participant.reply(view)
        except BaseException as fault:
            errand.over()
            if isinstance(fault, ParticipantError):
                raise self._failed(fault) from fault
            raise
        finally:
            del self._since[id(view)]
        self._failures = 0
        self._tally.calls += 1
        return reply

    def _failed(self, fault: ParticipantError) -> ParticipantError:
        """The fault under the alias's name. What speaks against one request does not speak against
        the model."""
        message = f"{self.alias}: {fault}"
        self._failures += not isinstance(fault, Rejected)
        if isinstance(fault, Refused) or self._failures >= FAILURES:
            self._down = Refused(message, kind=fault.kind, hint=fault.hint)
        return fault.with_message(message)

    async def close(self) -> None:
        await self.participant.close()
