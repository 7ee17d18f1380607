"""A run's bounds on calls and money: before a call leaves, the most that it can cost is set aside."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any

from parley.costs import money
from parley.errors import Halted, Refused, Rejected
from parley.places import Brake
from parley.pool import View
from parley.prices import Price, Prices
from parley.providers.protocol import Reply
from parley.store.journal import Journal

LONGEST_REPLY, SHORTEST_REPLY = 1024, 256  # tokens that are set aside for a reply at least, at first and later on
ENOUGH = 8  # replies by which a model is known
TIMES = 4  # how much longer a reply may be than the longest so far, where max_tokens does not say
DENSER = 2  # how many more tokens a byte may give than the most so far
TURN, REQUEST = 16, 64  # tokens that a turn and a request may have besides their words
SLACK = 1e-9  # USD, for sums of many small numbers
AHEAD = 16  # calls that are noted as spent before they leave, so that a killed process has spent no more than is known


@dataclass
class Known:
    """What the calls of one model have shown: so much, at the most, is expected of the next one."""

    limit: int | None = None  # max_tokens
    extra: int = 0  # bytes that every request carries besides its view
    dense: float = 0.0  # the most tokens that a byte gave
    longest: int = 0
    replies: int = 0

    def sizes(self, view: View) -> tuple[int, float, float]:
        """Bytes of a request, its tokens and those of its reply at the most."""
        turns = view.turns
        size = sum(len(turn.encoded) for turn in turns) + self.extra
        if view.examples is not None:
            size += sum(len(text.encode()) for example in view.examples[1] for text in example)
        # No usual tokenizer makes more than one token of a byte.
        into = size * (self.dense * DENSER or 1.0) + TURN * len(turns) + REQUEST
        least = SHORTEST_REPLY if self.replies >= ENOUGH and self.longest else LONGEST_REPLY
        return size, into, max(self.limit, self.longest) if self.limit else max(least, TIMES * self.longest)

    def learn(self, size: int, reply: Reply) -> None:
        self.dense = max(self.dense, (reply.usage.tokens_in or 0) / size)
        self.longest = max(self.longest, reply.usage.tokens_out or 0)
        self.replies += 1


@dataclass(eq=False)
class Call:
    """One call on its way: what is set aside for it, and how often it was sent."""

    budget: Budget
    alias: str
    usd: float
    size: int
    sent: int = 0

    def leaves(self) -> None:
        """Another request of this call: the first was counted before, a further try counts too."""
        self.sent += 1
        if self.sent > 1:
            self.budget.again(self)

    def lost(self) -> None:
        """A request of this call broke off, and may have been paid; what is set aside now stands for the next one."""
        self.budget.usd += self.usd


@dataclass
class Budget:
    """Lets calls leave as long as no bound can be passed, whatever they will cost; then the run drains."""

    most_usd: float | None
    most_calls: int | None
    prices: Prices
    brake: Brake
    journal: Journal
    calls: int = 0  # that have left, in this sitting and before
    usd: float = 0.0  # spent, in this sitting and before
    aside: float = 0.0  # set aside for calls on their way
    known: dict[str, Known] = field(default_factory=dict)
    _flights: set[Call] = field(default_factory=set)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)
    _noted: tuple[int, float] = (0, 0.0)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def seat(self, alias: str, participant: Any, options: dict[str, Any]) -> str:
        """Look at a model's own limits once; what the person should know about them."""
        limit = getattr(getattr(participant, "provider", None), "max_tokens", None)
        self.known[alias] = Known(limit if isinstance(limit, int) else None, len(str(options.get("system") or "").encode()))
        price = self._price(alias)
        if price is None or price.free or self.known[alias].limit:
            return ""
        return (
            f"the bound in USD goes by the longest reply of {alias} so far: a much longer one may pass it a little, "
            f"unless -M {alias}.max_tokens=N is set"
        )

    async def leave(self, alias: str, view: View) -> Call:
        """Set aside the most that a call can cost; wait for others to come back where that does not fit yet."""
        while True:
            self.brake.gate()
            self._refuse_more_calls()
            size, usd = self._most(alias, view)
            if not size:
                break
            # The first call of a model goes alone: it shows how the endpoint counts.
            alone = self.known[alias].replies or all(call.alias != alias for call in self._flights)
            if alone and self.usd + self.aside + usd <= (self.most_usd or 0.0) + SLACK:
                break
            if not self._flights:
                raise self._spent(self._why(alias, usd), "--budget-usd")
            await self._changed()
        call = Call(self, alias, usd, size)
        self._flights.add(call)
        self.calls += 1
        self.aside += usd
        try:
            await self._note(usd)
        except BaseException:
            self.calls -= 1
            self._back(call, 0.0)
            raise
        return call

    def _most(self, alias: str, view: View) -> tuple[int, float]:
        """Bytes of a request and the most that it can cost; nothing where it costs nothing."""
        price = self._price(alias)
        if price is None or price.free:
            return 0, 0.0
        size, into, out = self.known[alias].sizes(view)
        return size, price.most(into, out)

    def _price(self, alias: str, served: str | None = None) -> Price | None:
        return None if self.most_usd is None else self.prices.of(alias, served)

    def _why(self, alias: str, usd: float) -> str:
        hint = "" if self.known[alias].limit else f"; with -M {alias}.max_tokens=N it would be less"
        left = f"{money(self.usd)} of {money(self.most_usd or 0)} USD are spent"
        return f"{left}, and the next call of {alias} may cost up to {money(usd)}{hint}"

    def _spent(self, reason: str, flag: str) -> Halted:
        self.brake.pull(reason, "budget", flag)
        self._wake()
        return Halted(reason)

    def _refuse_more_calls(self) -> None:
        if self.most_calls is not None and self.calls >= self.most_calls:
            raise self._spent(f"{self.calls} calls have left, and no more are allowed", "--max-calls")

    def again(self, call: Call) -> None:
        """A further try of a call that is on its way."""
        self._refuse_more_calls()
        if call.usd and self.usd + self.aside > (self.most_usd or 0.0) + SLACK:
            raise self._spent(self._why(call.alias, call.usd), "--budget-usd")
        self.calls += 1

    def came(self, call: Call, reply: Reply | str) -> None:
        """A reply is there: what it really cost takes the place of what was set aside; if nobody counted, that is kept."""
        usd = call.usd
        if call.size and isinstance(reply, Reply):
            usage, price = reply.usage, self._price(call.alias, reply.model) or self._price(call.alias)
            self.known[call.alias].learn(call.size, reply)
            if price is not None and usage.tokens_in is not None and usage.tokens_out is not None:
                usd = price.usd(usage.tokens_in, usage.tokens_cached, usage.tokens_out, written=usage.tokens_written)
        self._back(call, usd)

    def failed(self, call: Call, fault: BaseException) -> None:
        """No reply came. Requests that were refused cost nothing; one that was cut off may be billed."""
        self._back(call, 0.0 if isinstance(fault, Refused | Rejected | Halted) else call.usd)

    def _back(self, call: Call, usd: float) -> None:
        self._flights.remove(call)
        self.usd += usd
        self.aside = math.fsum(each.usd for each in self._flights)
        self._wake()

    async def _changed(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _note(self, usd: float) -> None:
        """Keep on record what may have been spent before it is: a little ahead, so that few calls wait for it."""
        if self.calls <= self._noted[0] and self.usd + self.aside <= self._noted[1]:
            return
        async with self._lock:
            if self.calls <= self._noted[0] and self.usd + self.aside <= self._noted[1]:
                return
            calls, most = self.calls + AHEAD, self.usd + self.aside + AHEAD * usd
            calls = calls if self.most_calls is None else min(calls, self.most_calls)
            noted = calls, most if self.most_usd is None else max(self.usd, min(most, self.most_usd))
            await self.journal.spent(noted[0], None if self.most_usd is None else noted[1])
            self._noted = noted

    async def settle(self) -> None:
        """At the end all is known."""
        await self.journal.spent(self.calls, None if self.most_usd is None else self.usd)
