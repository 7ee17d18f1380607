"""The limits `--max-calls` and `--budget-usd`: money is reserved before each call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from parley.config.prepare import limit_of
from parley.errors import Halted, ParticipantError, Refused, Rejected
from parley.match.protocol import Reply
from parley.money import Price, Prices, format_usd
from parley.rules.pool import View
from parley.runs.progress import StopSignal
from parley.runs.request_estimates import RequestEstimator
from parley.store import Journal
from parley.tables import plural, shorten

SLACK = 1e-9  # USD, for sums of many small numbers
FEW = 4  # at a limit, failed calls are mentioned if at least one in FEW failed
AHEAD_SHARE = 0.02  # the largest share of the budget that is saved as spent ahead
# calls that are saved as spent ahead, so that a killed process has not spent more than was saved
AHEAD = 16


@dataclass(eq=False)
class Reservation:
    """One call in progress: the money reserved for its current request, and whether a request
    without an answer may be billed."""

    budget: Budget
    alias: str
    reports_requests: bool  # each of them; otherwise a call counts as one request
    usd: float = 0.0
    size: int = 0  # bytes; 0 if it costs nothing
    mark: bytes = b""  # of its conversation
    sent: int = 0
    open: bool = False
    deferred: bool = False  # the reply can be fetched later: its cost counts until then
    first: bool = False  # of its model

    async def before_request(self) -> None:
        """Count a request that is about to be sent; each retry counts."""
        await self.budget.before_request(self)
        self.sent += 1
        self.open = True

    def refused(self, fault: str) -> None:
        """A request of this call was refused: it costs nothing."""
        self.open = self.deferred = False
        self.budget.record_failure(self, fault)

    def lost(self, fault: str) -> None:
        """A request of this call broke off and may be billed, so what was reserved counts as spent;
        the reservation now covers the next request."""
        self.refused(fault)
        self.budget.usd += self.usd


@dataclass
class Budget:
    """Lets calls through as long as they cannot exceed a limit, whatever they cost; then stops the
    run."""

    most_usd: float | None
    most_calls: int | None
    prices: Prices
    stop_signal: StopSignal
    journal: Journal
    calls: int = 0  # made in this session and before
    usd: float = 0.0  # spent in this session and before
    reserved: float = 0.0  # USD, for calls in progress
    blocked: int = 0  # calls that wait for money, or behind one that does
    estimators: dict[str, RequestEstimator] = field(default_factory=dict)
    batched: set[str] = field(default_factory=set)  # models that are called in waves
    _in_flight: int = 0  # calls with reserved money
    # by model: the first call waits for money, others wait for the first
    _queues: dict[str, asyncio.Lock] = field(default_factory=dict)
    _waiting: set[asyncio.Future[None]] = field(default_factory=set)  # those first calls
    _faults: int = 0  # requests that failed, and how the last of them did
    _fault: str = ""
    _saved: tuple[int, float] = (0, 0.0)
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)

    def add_model(self, alias: str, participant: Any, options: dict[str, Any]) -> str:
        """Add a model, and return a notice if its replies have no limit."""
        system = str(options.get("system") or "")
        self.estimators[alias] = RequestEstimator(limit_of(participant), len(system.encode()))
        price = self._price(alias)
        if price is None or price.free or self.estimators[alias].limit:
            return ""
        return (
            f"the replies of {alias} have no length limit, so a very long reply may exceed "
            "--budget-usd (Parley plans with the longest reply so far). To prevent this, add "
            f"-M {alias}.max_tokens=N"
        )

    async def reserve(self, alias: str, view: View, reports_requests: bool) -> Reservation:
        """Reserve the most that a call can cost. If it does not fit, wait for others to finish."""
        call, estimator, price = (
            Reservation(self, alias, reports_requests, open=not reports_requests),
            self.estimators[alias],
            self._price(alias),
        )
        try:
            if price is None or price.free:
                self._reserve_now(call)
            else:
                # a wave of a single request would take as long as one of all of them
                if not estimator.replies and alias not in self.batched:
                    await estimator.first.acquire()
                    call.first = True
                    if estimator.replies:
                        self._let_others_leave(call)
                self.blocked += 1
                try:
                    async with self._queues.setdefault(alias, asyncio.Lock()):
                        await self._wait_for_money(call, view, price)
                finally:
                    self.blocked -= 1
        except BaseException:
            self._let_others_leave(call)
            raise
        try:
            await self._save_ahead(call.usd)
        except BaseException:
            self.calls -= not reports_requests
            self._release(call, 0.0)
            raise
        return call

    async def _wait_for_money(self, call: Reservation, view: View, price: Price) -> None:
        while True:
            found = self.estimators[call.alias].estimate(view)
            call.size, call.mark, call.usd = (
                found.size,
                found.mark,
                price.most(found.into, found.out),
            )
            if self.usd + self.reserved + call.usd <= (self.most_usd or 0.0) + SLACK:
                return self._reserve_now(call)
            self.stop_signal.check()
            if not self._in_flight:
                raise self._too_expensive(call)
            changed = asyncio.get_running_loop().create_future()
            self._waiting.add(changed)
            try:
                await changed
            finally:
                self._waiting.discard(changed)

    def _reserve_now(self, call: Reservation) -> None:
        self.stop_signal.check()
        self._refuse_more_calls()
        # participants that report requests are counted when they send them
        self.calls += not call.reports_requests
        self.reserved += call.usd
        self._in_flight += bool(call.size)

    def _let_others_leave(self, call: Reservation) -> None:
        """Let other calls of a model go on if this was its first."""
        if call.first:
            call.first = False
            self.estimators[call.alias].first.release()

    def _price(self, alias: str, served: str | None = None) -> Price | None:
        return None if self.most_usd is None else self.prices.of(alias, served)

    def _too_expensive(self, call: Reservation) -> Halted:
        spent = f"{format_usd(self.usd)} of {format_usd(self.most_usd or 0)} USD spent"
        return self._stop_at_limit(
            f"{spent}; the next call to {call.alias} may cost up to {format_usd(call.usd)} USD",
            "--budget-usd",
            call.usd,
        )

    def _stop_at_limit(self, reason: str, limit: str, needed: float) -> Halted:
        halted = self.stop_signal.stop(reason, "budget", limit, needed)
        self._wake()
        return halted

    def _refuse_more_calls(self) -> None:
        if self.most_calls is not None and self.calls >= self.most_calls:
            raise self._stop_at_limit(
                f"the limit of --max-calls is reached ({plural(self.calls, 'call')} made)",
                "--max-calls",
                1,
            )

    def record_failure(self, call: Reservation, fault: str) -> None:
        """Count a request that failed."""
        self._faults += 1
        self._fault = f"{call.alias}: {fault}"

    @property
    def failure_note(self) -> str:
        """What to add when a limit is reached and many calls failed: they may have used it up."""
        if self._faults * FEW < self.calls or not self._faults:
            return ""
        return (
            f"; {min(self._faults, self.calls)} of {plural(self.calls, 'call')} failed, most "
            f"recently {shorten(self._fault, 300)}"
        )

    async def before_request(self, call: Reservation) -> None:
        """Count a request of a call, and save that before it is sent."""
        self._refuse_more_calls()
        if call.sent and call.usd and self.usd + self.reserved > (self.most_usd or 0.0) + SLACK:
            raise self._too_expensive(call)
        self.calls += 1
        await self._save_ahead(call.usd)

    def settle(self, call: Reservation, reply: Reply | str) -> None:
        """Replace what was reserved by what the reply cost. If the endpoint counted no tokens, what
        was reserved counts as spent."""
        usd = call.usd
        if call.size and isinstance(reply, Reply):
            usage, price = (
                reply.usage,
                self._price(call.alias, reply.model) or self._price(call.alias),
            )
            self.estimators[call.alias].update(call.size, call.mark, reply)
            if price is not None and usage.tokens_in is not None and usage.tokens_out is not None:
                usd = price.usd(
                    usage.tokens_in,
                    usage.tokens_cached,
                    usage.tokens_out,
                    written=usage.tokens_written,
                )
        self._release(call, usd)

    def settle_failed(self, call: Reservation, fault: BaseException) -> None:
        """Settle a call without a reply. A refused request costs nothing, a lost one is counted
        already, and one without an outcome may be billed."""
        if not call.reports_requests and isinstance(fault, ParticipantError):
            self.record_failure(call, str(fault))
        unsure = call.open and not isinstance(fault, Refused | Rejected | Halted)
        self._release(call, call.usd if unsure or call.deferred else 0.0)

    def _release(self, call: Reservation, usd: float) -> None:
        self.usd += usd
        self._in_flight -= bool(call.size)
        self.reserved = self.reserved - call.usd if self._in_flight else 0.0
        self._let_others_leave(call)
        self._wake()

    def _wake(self) -> None:
        """Let the first call in each queue check again whether it fits: a cheap call of one
        model may overtake an expensive one of another."""
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)

    async def _save_ahead(self, usd: float) -> None:
        """Save what may be spent before it is spent: a little ahead, so that few calls have to wait
        for the store."""
        if self.calls <= self._saved[0] and self.usd + self.reserved <= self._saved[1]:
            return
        async with self._saving:
            if self.calls <= self._saved[0] and self.usd + self.reserved <= self._saved[1]:
                return
            ahead = (
                AHEAD * usd
                if self.most_usd is None
                else min(AHEAD * usd, self.most_usd * AHEAD_SHARE)
            )
            calls, most = self.calls + AHEAD, self.usd + self.reserved + ahead
            calls = calls if self.most_calls is None else min(calls, self.most_calls)
            noted = (
                calls,
                most if self.most_usd is None else max(self.usd, min(most, self.most_usd)),
            )
            await self.journal.set_spending(noted[0], None if self.most_usd is None else noted[1])
            self._saved = noted

    async def save_totals(self) -> None:
        """Save the exact totals at the end."""
        await self.journal.set_spending(self.calls, None if self.most_usd is None else self.usd)
