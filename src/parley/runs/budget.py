"""A run's bounds on calls and money: before a call leaves, the most that it can cost is set
aside."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from parley.config.prepare import LONGEST_REPLY, REQUEST, SHORTEST_REPLY, TURN, limit_of
from parley.errors import Halted, ParticipantError, Refused, Rejected
from parley.match.protocol import Reply
from parley.money import Price, Prices, money
from parley.rules.pool import View
from parley.runs.progress import Brake
from parley.store import Journal
from parley.tables import shorten

ENOUGH = 8  # replies by which a model is known
TIMES = 4  # how much longer a reply may be than the longest so far, where max_tokens does not say
# how many more tokens a byte may give than the most so far, where an endpoint counts more than one
DENSER = 2
MOST_COUNTED = 20_000  # conversations of a model whose tokens are remembered
SLACK = 1e-9  # USD, for sums of many small numbers
FEW = 4  # a bound says how calls failed where at least one of so many did
AHEAD_SHARE = 0.02  # of the bound in USD, at the most, that is noted as spent ahead
# calls that are noted as spent before they leave, so that a killed process has spent no more than
# is known
AHEAD = 16


class Sizes(NamedTuple):
    """A request: its bytes, what tells its conversation from others, and tokens at the most."""

    size: int
    mark: bytes
    into: float
    out: float


@dataclass
class Known:
    """What the calls of one model have shown: so much, at the most, is expected of the next one."""

    limit: int | None = None  # max_tokens
    extra: int = 0  # bytes that every request carries besides its view
    dense: float = 0.0  # the most tokens that a byte gave
    # tokens of conversations as far as they were sent, by their digest
    counted: dict[bytes, int] = field(default_factory=dict)
    longest: int = 0
    replies: int = 0
    # until one is answered, calls go alone: it shows how tokens count
    first: asyncio.Lock = field(default_factory=asyncio.Lock)

    def sizes(self, view: View) -> Sizes:
        """How large a request is, and at the most its tokens and those of its reply.

        What the endpoint has counted in this conversation is known; of all that is new, each byte
        may be a token.
        """
        shown = (
            [text.encode() for example in view.examples[1] for text in example]
            if view.examples is not None
            else []
        )
        form = 0 if view.expect.schema is None else len(orjson.dumps(view.expect.schema))
        size = fresh = self.extra + sum(map(len, shown))
        mark, known, turns = blake2b(b"".join(shown), digest_size=16), 0, 0
        for turn in view.turns:
            mark.update(turn.encoded)
            size, fresh, turns = size + len(turn.encoded), fresh + len(turn.encoded), turns + 1
            if (found := self.counted.get(mark.digest())) is not None:
                known, fresh, turns = found, 0, 0
        # No usual tokenizer makes more than one token of a byte.
        into = (
            known
            + (fresh + form) * (self.dense * DENSER if self.dense > 1 else 1.0)
            + TURN * turns
            + REQUEST
        )
        least = SHORTEST_REPLY if self.replies >= ENOUGH and self.longest else LONGEST_REPLY
        out = max(self.limit, self.longest) if self.limit else max(least, TIMES * self.longest)
        return Sizes(size + form, mark.digest(), into, out)

    def learn(self, size: int, mark: bytes, reply: Reply) -> None:
        into, out = reply.usage.tokens_in, reply.usage.tokens_out or 0
        self.dense, self.longest = max(self.dense, (into or 0) / size), max(self.longest, out)
        self.replies += 1
        if into is not None:
            if len(self.counted) >= MOST_COUNTED:
                del self.counted[next(iter(self.counted))]
            # What is carried goes back with the next request, and is seen by nobody: it has at most
            # the tokens of its reply.
            self.counted[mark] = into + (0 if reply.provider_state is None else out)


@dataclass(eq=False)
class Reservation:
    """One call on its way: what is set aside for a request of it, and whether one may be paid that
    is not answered yet."""

    budget: Budget
    alias: str
    tells: bool  # of every request; who does not has sent one when it is asked
    usd: float = 0.0
    size: int = 0  # bytes; 0 where it costs nothing
    mark: bytes = b""  # of its conversation
    sent: int = 0
    open: bool = False
    first: bool = False  # of its model

    async def leaves(self) -> None:
        """A request of this call leaves now: it is counted, and a further try too."""
        await self.budget.sends(self)
        self.sent += 1
        self.open = True

    def refused(self, fault: str) -> None:
        """A request of this call was not taken."""
        self.open = False
        self.budget.heard(self, fault)

    def lost(self, fault: str) -> None:
        """A request of this call broke off, and may have been paid; what is set aside now stands
        for the next one."""
        self.refused(fault)
        self.budget.usd += self.usd


@dataclass
class Budget:
    """Lets calls leave as long as no bound can be passed, whatever they will cost; then the run
    drains."""

    most_usd: float | None
    most_calls: int | None
    prices: Prices
    brake: Brake
    journal: Journal
    calls: int = 0  # that have left, in this sitting and before
    usd: float = 0.0  # spent, in this sitting and before
    aside: float = 0.0  # set aside for calls on their way
    known: dict[str, Known] = field(default_factory=dict)
    _out: int = 0  # calls on their way for which something is set aside
    # by model: the first one waits for money, others for the first
    _lines: dict[str, asyncio.Lock] = field(default_factory=dict)
    _waiting: set[asyncio.Future[None]] = field(default_factory=set)  # the first ones
    _faults: int = 0  # requests that failed, and how the last of them did
    _fault: str = ""
    _noted: tuple[int, float] = (0, 0.0)
    _noting: asyncio.Lock = field(default_factory=asyncio.Lock)

    def seat(self, alias: str, participant: Any, options: dict[str, Any]) -> str:
        """Look at a model's own limits once; what the person should know about them."""
        system = str(options.get("system") or "")
        self.known[alias] = Known(limit_of(participant), len(system.encode()))
        price = self._price(alias)
        if price is None or price.free or self.known[alias].limit:
            return ""
        return (
            f"the bound in USD goes by the longest reply of {alias} so far, as nothing limits "
            f"them: a much longer one may pass it"
        )

    async def leave(self, alias: str, view: View, tells: bool) -> Reservation:
        """Set aside the most that a call can cost; wait for others to come back where that does not
        fit yet."""
        call, known, price = (
            Reservation(self, alias, tells, open=not tells),
            self.known[alias],
            self._price(alias),
        )
        try:
            if price is None or price.free:
                self._set_aside(call)
            else:
                if not known.replies:
                    await known.first.acquire()
                    call.first = True
                    if known.replies:
                        self._others(call)
                async with self._lines.setdefault(alias, asyncio.Lock()):
                    await self._fit(call, view, price)
        except BaseException:
            self._others(call)
            raise
        try:
            await self._note(call.usd)
        except BaseException:
            self.calls -= not tells
            self._back(call, 0.0)
            raise
        return call

    async def _fit(self, call: Reservation, view: View, price: Price) -> None:
        while True:
            found = self.known[call.alias].sizes(view)
            call.size, call.mark, call.usd = (
                found.size,
                found.mark,
                price.most(found.into, found.out),
            )
            if self.usd + self.aside + call.usd <= (self.most_usd or 0.0) + SLACK:
                return self._set_aside(call)
            self.brake.gate()
            if not self._out:
                raise self._too_dear(call)
            changed = asyncio.get_running_loop().create_future()
            self._waiting.add(changed)
            try:
                await changed
            finally:
                self._waiting.discard(changed)

    def _set_aside(self, call: Reservation) -> None:
        self.brake.gate()
        self._refuse_more_calls()
        # who tells of its requests is counted when they leave: it may have to wait before
        self.calls += not call.tells
        self.aside += call.usd
        self._out += bool(call.size)

    def _others(self, call: Reservation) -> None:
        """Let other calls of a model leave, where this was its first."""
        if call.first:
            call.first = False
            self.known[call.alias].first.release()

    def _price(self, alias: str, served: str | None = None) -> Price | None:
        return None if self.most_usd is None else self.prices.of(alias, served)

    def _too_dear(self, call: Reservation) -> Halted:
        left = f"{money(self.usd)} of {money(self.most_usd or 0)} USD are spent"
        return self._spent(
            f"{left}, and the next call of {call.alias} may cost up to {money(call.usd)}",
            "--budget-usd",
            call.usd,
        )

    def _spent(self, reason: str, limit: str, needed: float) -> Halted:
        halted = self.brake.pull(reason, "budget", limit, needed)
        self._wake()
        return halted

    def _refuse_more_calls(self) -> None:
        if self.most_calls is not None and self.calls >= self.most_calls:
            raise self._spent(
                f"{self.calls} calls have left, and no more are allowed", "--max-calls", 1
            )

    def heard(self, call: Reservation, fault: str) -> None:
        """A request failed."""
        self._faults += 1
        self._fault = f"{call.alias}: {fault}"

    @property
    def failures(self) -> str:
        """What else is to be said once a bound is reached: one that broken calls have used up hides
        what is broken."""
        if self._faults * FEW < self.calls or not self._faults:
            return ""
        return (
            f"; {min(self._faults, self.calls)} of {self.calls} calls failed, at last "
            f"{shorten(self._fault, 300)}"
        )

    async def sends(self, call: Reservation) -> None:
        """A request of a call that is on its way, noted before it leaves."""
        self._refuse_more_calls()
        if call.sent and call.usd and self.usd + self.aside > (self.most_usd or 0.0) + SLACK:
            raise self._too_dear(call)
        self.calls += 1
        await self._note(call.usd)

    def came(self, call: Reservation, reply: Reply | str) -> None:
        """A reply is there: what it really cost takes the place of what was set aside; if nobody
        counted, that is kept."""
        usd = call.usd
        if call.size and isinstance(reply, Reply):
            usage, price = (
                reply.usage,
                self._price(call.alias, reply.model) or self._price(call.alias),
            )
            self.known[call.alias].learn(call.size, call.mark, reply)
            if price is not None and usage.tokens_in is not None and usage.tokens_out is not None:
                usd = price.usd(
                    usage.tokens_in,
                    usage.tokens_cached,
                    usage.tokens_out,
                    written=usage.tokens_written,
                )
        self._back(call, usd)

    def failed(self, call: Reservation, fault: BaseException) -> None:
        """No reply came. What was refused cost nothing, what was lost is counted; a request that is
        still out may be billed."""
        if not call.tells and isinstance(fault, ParticipantError):
            self.heard(call, str(fault))
        self._back(
            call,
            call.usd if call.open and not isinstance(fault, Refused | Rejected | Halted) else 0.0,
        )

    def _back(self, call: Reservation, usd: float) -> None:
        self.usd += usd
        self._out -= bool(call.size)
        self.aside = self.aside - call.usd if self._out else 0.0
        self._others(call)
        self._wake()

    def _wake(self) -> None:
        """Let the first in each line see whether it fits now: a smaller call of another model may
        go before a dear one."""
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)

    async def _note(self, usd: float) -> None:
        """Keep on record what may have been spent before it is: a little ahead, so that few calls
        wait for it."""
        if self.calls <= self._noted[0] and self.usd + self.aside <= self._noted[1]:
            return
        async with self._noting:
            if self.calls <= self._noted[0] and self.usd + self.aside <= self._noted[1]:
                return
            ahead = (
                AHEAD * usd
                if self.most_usd is None
                else min(AHEAD * usd, self.most_usd * AHEAD_SHARE)
            )
            calls, most = self.calls + AHEAD, self.usd + self.aside + ahead
            calls = calls if self.most_calls is None else min(calls, self.most_calls)
            noted = (
                calls,
                most if self.most_usd is None else max(self.usd, min(most, self.most_usd)),
            )
            await self.journal.set_spending(noted[0], None if self.most_usd is None else noted[1])
            self._noted = noted

    async def settle(self) -> None:
        """At the end all is known."""
        await self.journal.set_spending(self.calls, None if self.most_usd is None else self.usd)
