"""The limits `--max-calls` and `--budget-usd`: money is reserved before each call."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from parley.config.prepare import Prepared, limit_of
from parley.errors import Halted, ParticipantError, Refused, Rejected
from parley.match.protocol import Reply
from parley.money import Price, Prices, cost_rows, format_usd, total_cost
from parley.rules.pool import View
from parley.runs.progress import StopSignal
from parley.runs.request_estimates import RequestEstimator
from parley.store.journal import Journal
from parley.store.reader import RunReader
from parley.store.shared_limits import CALLS, SLACK, USD, GrantRequest, Grants, Holding
from parley.store.shared_runs import SpentBefore
from parley.tables import plural, shorten

FEW = 4  # at a limit, failed calls are mentioned if at least one in FEW failed
AHEAD_SHARE = 0.02  # the largest share of the budget that is saved as spent ahead
# calls that are saved as spent ahead, so that a killed process has not spent more than was saved
AHEAD = 16
MOST_AHEAD = 4096  # calls that a fast worker asks for at a time
OFTEN = 0.5  # seconds between two requests for more, below which a worker asks for more at a time
FIRST_POLL, LONGEST_POLL = 0.1, 1.0  # seconds until a worker that was refused asks again


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

    def unanswered(self, fault: str) -> None:
        """A request of this call broke off and may be billed, so what was reserved counts as spent;
        the reservation now covers the next request."""
        self.refused(fault)
        self.budget.usd += self.usd


@dataclass
class Budget:
    """Lets calls through as long as they cannot exceed what was granted, whatever they cost; then
    stops the run.

    A process that plays a run alone is granted the limits of the run, and saves what it may spend
    a little ahead. A worker asks the store for parts of them: what it was granted is on record.
    """

    most_usd: float | None  # the limits of the whole run
    most_calls: int | None
    prices: Prices
    stop_signal: StopSignal
    journal: Journal
    calls: int = 0  # made in this session and before; by this worker, if there are several
    usd: float = 0.0  # spent, likewise
    grants: Grants | None = None  # of a worker
    before_calls: int = 0  # made before there were workers, and what they cost
    before_usd: float = 0.0
    reserved: float = 0.0  # USD, for calls in progress
    blocked: int = 0  # calls that wait for money, or behind one that does
    estimators: dict[str, RequestEstimator] = field(default_factory=dict)
    batched: set[str] = field(default_factory=set)  # models that are called in batches
    _in_flight: int = 0  # calls with reserved money
    # by model: the first call waits for money, others wait for the first
    _queues: dict[str, asyncio.Lock] = field(default_factory=dict)
    _waiting: set[asyncio.Future[None]] = field(default_factory=set)  # those first calls
    _faults: int = 0  # requests that failed, and how the last of them did
    _fault: str = ""
    _saved: tuple[float, float] = (0, 0.0)
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    _granted_calls: float = field(init=False)
    _granted_usd: float = field(init=False)
    # of a worker: what all others have made and spent, as last known
    _others_calls: int = 0
    _others_usd: float = 0.0
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: float = 0.0  # when it asked for more, and for how many calls ahead
    _ahead: int = AHEAD
    _stuck: float = 0.0  # USD, reserved for calls that wait before they send a request again
    _refused: tuple[float, float] | None = None  # calls and USD that were refused last
    _may_grow: bool = False  # whether others may give back what was refused
    _poll: asyncio.TimerHandle | None = None  # asks again
    _pause: float = FIRST_POLL

    def __post_init__(self) -> None:
        if self.grants is None:
            self._granted_calls = math.inf if self.most_calls is None else self.most_calls
            self._granted_usd = self.most_usd or 0.0
        else:
            self._granted_calls = self._granted_usd = 0.0
            self._saved = math.inf, math.inf  # grants are on record

    @property
    def total_calls(self) -> int:
        """The calls of the whole run, as far as known."""
        return self.calls + self._others_calls

    @property
    def total_usd(self) -> float:
        """The cost of the whole run, as far as known."""
        return self.usd + self._others_usd

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
                while self.calls >= self._granted_calls:
                    await self._wait_for_more(call, None)
                self._reserve_now(call)
            else:
                # a batch of a single request would take as long as one of all of them
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
            if self._has_money(call.usd) and self.calls < self._granted_calls:
                return self._reserve_now(call)
            await self._wait_for_more(call, call.usd)

    def _has_money(self, usd: float) -> bool:
        """Whether this much was granted beyond what is spent and reserved."""
        return self.usd + self.reserved + usd <= self._granted_usd + SLACK

    async def _wait_for_more(self, call: Reservation, usd: float | None) -> None:
        """Wait until more is granted or a call has ended; stop the run if neither helps. `usd`:
        what the call needs besides what is reserved; None if it needs no money."""
        self.stop_signal.check()
        if self.grants is not None and await self._ask(self.grants, call, usd):
            return
        is_short = usd is not None and not self._has_money(usd)
        # calls in progress may cost less than what is reserved for them
        if not (self._may_grow or (is_short and usd and self._in_flight)):
            raise self._too_expensive(call) if is_short else self._too_many_calls()
        changed = asyncio.get_running_loop().create_future()
        self._waiting.add(changed)
        if self.grants is not None and self._poll is None:
            self._poll = asyncio.get_running_loop().call_later(self._pause, self._poll_again)
        try:
            await changed
        finally:
            self._waiting.discard(changed)

    async def _ask(self, grants: Grants, call: Reservation, usd: float | None) -> bool:
        """Ask the store for more. Returns whether there is enough for a call."""
        async with self._asking:
            if self.calls < self._granted_calls and (usd is None or self._has_money(usd)):
                return True  # another call has asked meanwhile
            used = self.usd + self.reserved
            needed = self.calls + 1, used + usd if usd is not None else 0.0
            if (last := self._refused) and needed[0] >= last[0] and needed[1] >= last[1]:
                return False
            now = time.monotonic()
            self._ahead = (
                min(MOST_AHEAD, 2 * self._ahead)
                if now - self._asked < OFTEN
                else max(AHEAD, self._ahead // 2)
            )
            self._asked = now
            requests = {
                CALLS: GrantRequest(
                    limit=self.most_calls,
                    before=self.before_calls,
                    spent=self.calls,
                    stuck=0.0,
                    used=self.calls,
                    needed=needed[0],
                    most=needed[0] + self._ahead,
                )
            }
            if self.most_usd is not None:
                ahead = min(self._ahead * call.usd, self.most_usd * AHEAD_SHARE)
                requests[USD] = GrantRequest(
                    limit=self.most_usd,
                    before=self.before_usd,
                    spent=self.usd,
                    stuck=self._stuck,
                    used=used,
                    needed=needed[1],
                    most=needed[1] + ahead if usd is not None else 0.0,
                )
            # no other call may use meanwhile what is given back if the store refuses
            self._granted_calls, self._granted_usd = self.calls, used
            answer = await grants.ask(requests)
            self._set_granted(answer.amounts)
            self._others_calls = round(answer.others[CALLS])
            self._others_usd = answer.others.get(USD, 0.0)
            self._may_grow = answer.may_grow
            if answer.is_enough:
                self._pause = FIRST_POLL
                self._wake()
            else:
                self._refused = needed
            return answer.is_enough

    def _set_granted(self, amounts: Mapping[str, float]) -> None:
        self._granted_calls, self._granted_usd = amounts[CALLS], amounts.get(USD, 0.0)

    def _poll_again(self) -> None:
        self._poll, self._pause = None, min(LONGEST_POLL, self._pause * 1.5)
        self._wake()

    async def give_back(self, all: bool = False) -> None:
        """Let the store know what is spent, and give back what is not used: all of it, or what
        other workers wait for."""
        if self.grants is None:
            return
        async with self._asking:
            used = self.usd + self.reserved
            self._granted_calls, self._granted_usd = self.calls, used
            holdings = {CALLS: Holding(self.calls, self.calls)}
            if self.most_usd is not None:
                holdings[USD] = Holding(self.usd, used)
            self._set_granted(await self.grants.give_back(holdings, all))

    def _reserve_now(self, call: Reservation) -> None:
        self.stop_signal.check()
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
        spent = f"{format_usd(self.total_usd)} of {format_usd(self.most_usd or 0)} USD spent"
        return self._stop_at_limit(
            f"{spent}; the next call to {call.alias} may cost up to {format_usd(call.usd)} USD",
            "--budget-usd",
            call.usd,
        )

    def _stop_at_limit(self, reason: str, limit: str, needed: float) -> Halted:
        halted = self.stop_signal.stop(reason, "budget", limit, needed)
        self._wake()
        return halted

    def _too_many_calls(self) -> Halted:
        made = plural(self.total_calls, "call")
        return self._stop_at_limit(
            f"the limit of --max-calls is reached ({made} made)", "--max-calls", 1
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
        # what is reserved was granted for the first request
        usd = 0.0 if call.sent and call.usd else None
        if self.calls >= self._granted_calls or (usd is not None and not self._has_money(usd)):
            self._stuck += call.usd
            try:
                while self.calls >= self._granted_calls or (
                    usd is not None and not self._has_money(usd)
                ):
                    await self._wait_for_more(call, usd)
            finally:
                self._stuck -= call.usd
        self.calls += 1
        await self._save_ahead(call.usd)

    def settle(self, call: Reservation, reply: Reply | str) -> None:
        """Replace what was reserved by what the reply cost. If the endpoint counted no tokens, what
        was reserved counts as spent."""
        usd = call.usd
        if call.size and isinstance(reply, Reply):
            usage, price = (
                reply.usage,
                self._price(call.alias, reply.model_served) or self._price(call.alias),
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
        """Settle a call without a reply. A refused request costs nothing, an unanswered one is
        counted already, and one without an outcome may be billed."""
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
        self._refused = None
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
        if self.grants is not None:
            await self.give_back(all=True)
        else:
            usd = None if self.most_usd is None else self.usd
            await self.journal.set_spending(self.calls, usd)


def find_spent(prepared: Prepared, reader: RunReader) -> SpentBefore:
    """What a run may have spent so far; money only if it has a limit in USD."""
    calls, usd = reader.run.spent_at_most()
    if prepared.config.budget_usd is not None:
        # requests of open batches are reserved again as soon as their matches go on
        opened = {
            each.place: each.usd for batch in reader.batches.open() for each in batch.requests
        }
        usd = max(
            (usd or 0.0) - sum(opened.values()),
            total_cost(cost_rows(reader, prepared.prices)).at_least or 0.0,
        )
    return SpentBefore(calls, usd)


def make_budget(
    prepared: Prepared,
    journal: Journal,
    stop_signal: StopSignal,
    spent: SpentBefore,
    grants: Grants | None = None,
) -> Budget | None:
    """The budget of a run if it has limits; what was spent before counts. With `grants`, the part
    of it that a worker gets."""
    config = prepared.config
    if config.budget_usd is None and config.max_calls is None:
        return None
    budget = partial(
        Budget, config.budget_usd, config.max_calls, prepared.prices, stop_signal, journal
    )
    if grants is None:
        return budget(spent.calls, spent.usd or 0.0)
    return budget(grants=grants, before_calls=spent.calls, before_usd=spent.usd or 0.0)
