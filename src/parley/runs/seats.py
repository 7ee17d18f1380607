"""A participant with its limits: rate, budget, failures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from parley.errors import ParticipantError, Refused, Rejected
from parley.match.protocol import Call, Participant, Reply
from parley.participants._registry import Limits
from parley.rules.pool import Seat, View
from parley.runs.progress import Tally
from parley.runs.rate_limits import Pace

if TYPE_CHECKING:
    from parley.runs.budget import Budget, Reservation

FAILURES = 3  # in a row, after which a participant is not asked any more


class LimitedCall(Call):
    """One call of a participant within its limits, inside the call of its match."""

    __slots__ = ("_by", "_down", "_match", "_open", "_reserved", "_role", "_tokens")

    def __init__(
        self,
        by: LimitedParticipant,
        seat: Seat,
        match: Call,
        tokens: float = 0.0,
        reserved: Reservation | None = None,
    ) -> None:
        self._by, self._role, self._match = by, seat.role, match
        self._tokens, self._reserved = tokens, reserved
        self._open = False  # a request has left, and nobody knows yet what became of it
        self._down = False  # it waits for an endpoint that is down

    async def wait_for_rate(self) -> None:
        await self._by.pace.turn(self._tokens, self)

    async def before_request(self) -> None:
        if self._reserved is not None:
            await self._reserved.leaves()
        self._by.sent += 1
        self._open = True

    def check_running(self) -> None:
        self._match.check_running()

    def refused(self, fault: str) -> None:
        self._open = False
        if self._reserved is not None:
            self._reserved.refused(fault)

    def lost(self, fault: str) -> None:
        self._open = False
        self._by.lost[self._role] += 1
        if self._reserved is not None:
            self._reserved.lost(fault)

    def waiting(self, endpoint_down: bool) -> None:
        if endpoint_down != self._down:
            self._down = endpoint_down
            self._by.resting += 1 if endpoint_down else -1
            self._match.waiting(endpoint_down)

    def notice(self, text: str) -> None:
        self._match.notice(text)

    def failed(self) -> None:
        """The call brought no reply: the request that it sent last may be paid all the same."""
        self._by.lost[self._role] += self._open


class LimitedParticipant:
    """A participant under its alias, shared by all matches. Once it has proved unable to answer it
    is not asked any more."""

    def __init__(
        self,
        alias: str,
        participant: Participant,
        limits: Limits,
        tally: Tally,
        budget: Budget | None = None,
    ) -> None:
        self.alias, self.participant, self.sees_item = alias, participant, participant.sees_item
        self._tally, self._budget = tally, budget
        self.pace, self.sent, self.resting = Pace(limits), 0, 0
        # requests that may have been paid without a reply, by role
        self.lost: Counter[str] = Counter()
        self._called = 0
        # Participants that tell of every request are counted and held to their rate there, others
        # when they are asked.
        self._tells = getattr(participant, "tells", False)
        self.reply = self._limited if limits.any or budget is not None else self._asked
        self._failures = 0
        self._down: Refused | None = None  # why it is not asked any more
        self._since = tally.waiting.setdefault(alias, {})

    async def _limited(self, view: View, call: Call) -> Reply | str:
        """Ask within the limits of the model and the bounds of the run."""
        async with self.pace.places or nullcontext():
            call.check_running()  # the run may have stopped while this call waited for its place
            tokens = self.pace.supposed(view)
            if not self._tells:
                await self.pace.turn(tokens, call)
                call.check_running()
            asked = (
                self._ask(view, LimitedCall(self, view.seat, call, tokens))
                if self._budget is None
                else self._paid(view, call, tokens)
            )
            reply = await asked
            self.pace.came(tokens, reply)
            return reply

    async def _paid(self, view: View, call: Call, tokens: float) -> Reply | str:
        assert self._budget is not None
        if self._down is not None:
            raise self._down.with_message(str(self._down))
        reserved = await self._budget.leave(self.alias, view, self._tells)
        try:
            reply = await self._ask(view, LimitedCall(self, view.seat, call, tokens, reserved))
        except BaseException as fault:
            self._budget.failed(reserved, fault)
            raise
        self._budget.came(reserved, reply)
        return reply

    @property
    def left(self) -> int:
        """How many requests have left; who does not tell of them is counted by calls."""
        return self.sent if self._tells else self._called

    def _asked(self, view: View, call: Call) -> Coroutine[Any, Any, Reply | str]:
        return self._ask(view, LimitedCall(self, view.seat, call))

    async def _ask(self, view: View, call: LimitedCall) -> Reply | str:
        if self._down is not None:
            raise self._down.with_message(str(self._down))
        self._called += 1
        self._since[id(view)] = time.monotonic()
        try:
            reply = await self.participant.reply(view, call)
        except BaseException as fault:
            call.failed()
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
