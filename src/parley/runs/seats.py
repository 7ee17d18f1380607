"""A participant with its limits: rate, budget, failures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from parley.config.trust import host_of, is_loopback
from parley.errors import ParticipantError, Refused, Rejected
from parley.match.protocol import Call, CallPlace, Participant, Reply
from parley.participants._registry import ModelLimits
from parley.providers._traits import traits_of
from parley.rules.pool import View
from parley.runs.progress import Progress
from parley.runs.rate_limits import RateLimiter
from parley.store.shared_limits import Grants

if TYPE_CHECKING:
    from parley.runs.budget import Budget, Reservation

FAILURES = 3  # in a row, after which a participant is not called any more


class LimitedCall(Call):
    """One call of a participant within its limits, inside the call of its match."""

    __slots__ = ("_by", "_down", "_match", "_open", "_reserved", "_role", "_tokens", "_view")

    def __init__(
        self,
        by: LimitedParticipant,
        view: View,
        match: Call,
        tokens: float = 0.0,
        reserved: Reservation | None = None,
    ) -> None:
        self._by, self._view, self._role, self._match = by, view, view.seat.role, match
        self._tokens, self._reserved = tokens, reserved
        self._open = False  # a request was sent and has no outcome yet
        self._down = False  # it is waiting for an endpoint that is down

    def place(self) -> CallPlace | None:
        match, view = self._match.match_number(), self._view
        return None if match is None else CallPlace(match, view.round, view.seat.key, view.attempt)

    def run_location(self) -> str:
        return self._by.run_location

    def reserved_usd(self) -> float:
        return 0.0 if self._reserved is None else self._reserved.usd

    def deferred(self) -> None:
        self._open = False
        if self._reserved is not None:
            self._reserved.deferred = True

    async def wait_for_rate(self) -> None:
        await self._by.rate.acquire(self._tokens, self)

    async def before_request(self) -> None:
        if self._reserved is not None:
            await self._reserved.before_request()
        self._by.sent += 1
        self._open = True

    def check_running(self) -> None:
        self._match.check_running()

    def refused(self, fault: str) -> None:
        self._open = False
        self._by.refused += 1
        if self._reserved is not None:
            self._reserved.refused(fault)

    def unanswered(self, fault: str) -> None:
        self._open = False
        self._by.unanswered[self._role] += 1
        if self._reserved is not None:
            self._reserved.unanswered(fault)

    def waiting(self, endpoint_down: bool) -> None:
        if endpoint_down != self._down:
            self._down = endpoint_down
            self._by.waiting_for_endpoint += 1 if endpoint_down else -1
            self._match.waiting(endpoint_down)

    def notice(self, text: str) -> None:
        self._match.notice(text)

    def failed(self) -> None:
        """Count a call without a reply: its last request may be billed all the same."""
        self._by.unanswered[self._role] += self._open


class LimitedParticipant:
    """A participant under its alias with its limits, shared by all matches. After several failures
    in a row it is not called any more."""

    def __init__(
        self,
        alias: str,
        participant: Participant,
        limits: ModelLimits,
        progress: Progress,
        budget: Budget | None = None,
        grants: Grants | None = None,
    ) -> None:
        """`grants`: of a worker; it shares the limits unless the model is on its own machine."""
        self.alias, self.participant, self.sees_item = alias, participant, participant.sees_item
        self._progress, self._budget = progress, budget
        self.rate = RateLimiter(limits, alias, None if is_on_this_machine(participant) else grants)
        self.sent = self.waiting_for_endpoint = 0
        # requests without a reply that may have been billed, by role
        self.unanswered: Counter[str] = Counter()
        self.refused = 0  # requests that the endpoint rejected
        self._called = 0
        # Participants that report each request are counted and rate-limited there, others here,
        # once per call.
        self._reports_requests = getattr(participant, "reports_requests", False)
        self.reply = (
            self._reply_limited if limits.any or budget is not None else self._reply_unlimited
        )
        self._failures = 0
        self._down: Refused | None = None  # why it is not called any more
        self._calls_since = progress.waiting.setdefault(alias, {})

    async def _reply_limited(self, view: View, call: Call) -> Reply | str:
        """Call within the limits of the model and of the run."""
        async with self.rate.slot(call):
            call.check_running()  # the run may have stopped while this call waited for a slot
            tokens = self.rate.estimate_tokens(view)
            if not self._reports_requests:
                await self.rate.acquire(tokens, call)
                call.check_running()
            asked = (
                self._ask(view, LimitedCall(self, view, call, tokens))
                if self._budget is None
                else self._reply_paid(view, call, tokens)
            )
            reply = await asked
            self.rate.correct(tokens, reply)
            return reply

    async def _reply_paid(self, view: View, call: Call, tokens: float) -> Reply | str:
        assert self._budget is not None
        if self._down is not None:
            raise self._down.with_message(str(self._down))
        reserved = await self._budget.reserve(self.alias, view, self._reports_requests)
        try:
            reply = await self._ask(view, LimitedCall(self, view, call, tokens, reserved))
        except BaseException as fault:
            self._budget.settle_failed(reserved, fault)
            raise
        self._budget.settle(reserved, reply)
        return reply

    @property
    def run_location(self) -> str:
        """The file of the run, or its place in a database."""
        return self._progress.location

    @property
    def requests_sent(self) -> int:
        """How many requests were sent; calls, if the participant does not report requests."""
        return self.sent if self._reports_requests else self._called

    @property
    def given_up(self) -> Refused | None:
        """Why this participant is not called any more; None if it is."""
        return self._down

    def _reply_unlimited(self, view: View, call: Call) -> Coroutine[Any, Any, Reply | str]:
        return self._ask(view, LimitedCall(self, view, call))

    async def _ask(self, view: View, call: LimitedCall) -> Reply | str:
        if self._down is not None:
            raise self._down.with_message(str(self._down))
        self._called += 1
        self._calls_since[id(view)] = time.monotonic()
        try:
            reply = await self.participant.reply(view, call)
        except BaseException as fault:
            call.failed()
            if isinstance(fault, ParticipantError):
                raise self._failed(fault) from fault
            raise
        finally:
            del self._calls_since[id(view)]
        self._failures = 0
        self._progress.calls += 1
        return reply

    def _failed(self, fault: ParticipantError) -> ParticipantError:
        """The error with the alias in its message. A rejected request does not count against the
        model."""
        message = f"{self.alias}: {fault}"
        self._failures += not isinstance(fault, Rejected)
        if isinstance(fault, Refused) or self._failures >= FAILURES:
            self._down = Refused(message, kind=fault.kind, hint=fault.hint)
        return fault.with_message(message)

    async def close(self) -> None:
        await self.rate.close()
        await self.participant.close()


def is_on_this_machine(participant: Participant) -> bool:
    """Whether a participant answers on the machine that calls it, so that each worker has one of
    its own: in this process, or at a loopback address."""
    who = getattr(participant, "provider", None) or participant
    if traits_of(type(who)).unbilled:
        return True
    address = getattr(who, "url", None) or getattr(who, "base_url", None)
    return is_loopback(host_of(address)) if address else who is participant
