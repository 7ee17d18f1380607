"""Participants at their places: counted, limited, and left alone once they cannot answer or nothing new may be asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parley.errors import Halted, ParticipantError, Refused, Rejected
from parley.pace import Limits, Pace
from parley.participants import Participant
from parley.pool import View
from parley.providers.protocol import Reply
from parley.providers.spending import LOST, SPEND

if TYPE_CHECKING:
    from parley.budget import Budget

FAILURES = 3  # in a row, after which a participant is not asked any more


@dataclass
class Tally:
    """How a run stands, for whoever shows it."""

    planned: int = 0
    done: int = 0
    aborted: int = 0
    failed: int = 0
    in_flight: int = 0
    calls: int = 0
    outlook: str = ""  # how far the plan has come, where more than counting is to be said
    began: float = field(default_factory=time.monotonic)
    notices: list[str] = field(default_factory=list)
    waiting: dict[str, dict[int, float]] = field(default_factory=dict)  # by alias: since when calls are under way
    _heard: set[str] = field(default_factory=set)

    def hear(self, text: str) -> None:
        """Take a notice to the person, once however often it is given."""
        if text not in self._heard:
            self._heard.add(text)
            self.notices.append(text)

    def slowest(self) -> tuple[str, float] | None:
        """Who has been waited for longest, and for how many seconds."""
        began = [(min(since.values()), alias) for alias, since in self.waiting.items() if since]
        return (min(began)[1], time.monotonic() - min(began)[0]) if began else None


class Brake:
    """Stops a run gently: calls in flight are awaited and recorded, nothing new is asked."""

    def __init__(self) -> None:
        self.reason, self.status, self.flag = "", "interrupted", ""

    def pull(self, reason: str, status: str = "interrupted", flag: str = "") -> None:
        """Stop for a reason; `flag` is the option whose bound was reached."""
        if not self.reason:
            self.reason, self.status, self.flag = reason, status, flag

    def gate(self) -> None:
        if self.reason:
            raise Halted(self.reason)


class Placed:
    """A participant under its alias: so many calls at a time, and none once it has proved unable to answer."""

    def __init__(
        self, alias: str, participant: Participant, limits: Limits, tally: Tally, brake: Brake, budget: Budget | None = None
    ) -> None:
        self.alias, self.participant, self.privy = alias, participant, participant.privy
        self._tally, self._brake, self._budget = tally, brake, budget
        self._pace = Pace(limits)
        self._ask = self._asked if budget is None else self._bounded
        self.reply = self._queued if limits.any else self._ask
        self._called = self._sent = 0
        self._failures, self._down = 0, ""
        self._since = tally.waiting.setdefault(alias, {})

    async def _queued(self, view: View) -> Reply | str:
        async with self._pace.places or nullcontext():
            self._brake.gate()  # it may have been pulled while this call waited for its place
            supposed = await self._pace.admit(view)
            self._brake.gate()
            reply = await self._ask(view)
            self._pace.came(supposed, reply)
            return reply

    async def _bounded(self, view: View) -> Reply | str:
        assert self._budget is not None
        if self._down:
            raise Refused(self._down)
        call = await self._budget.leave(self.alias, view)
        try:
            LOST.set(call.lost)
            reply = await self._asked(view, call.leaves)
        except BaseException as fault:
            self._budget.failed(call, fault)
            raise
        self._budget.came(call, reply)
        return reply

    def _leaves(self) -> None:
        self._sent += 1

    @property
    def left(self) -> int:
        """How many calls have left: those who send requests may have had to try again, others send none."""
        return max(self._called, self._sent)

    async def _asked(self, view: View, leaves: Callable[[], None] | None = None) -> Reply | str:
        if self._down:
            raise Refused(self._down)
        self._called += 1
        SPEND.set(leaves or self._leaves)
        self._since[id(view)] = time.monotonic()
        try:
            reply = await self.participant.reply(view)
        except ParticipantError as fault:
            raise self._failed(fault) from fault
        finally:
            del self._since[id(view)]
        self._failures = 0
        self._tally.calls += 1
        return reply

    def _failed(self, fault: ParticipantError) -> ParticipantError:
        """The fault under the alias's name. What speaks against one request does not speak against the model."""
        message = f"{self.alias}: {fault}"
        self._failures += not isinstance(fault, Rejected)
        if isinstance(fault, Refused) or self._failures >= FAILURES:
            self._down = message
        return type(fault)(message)

    async def close(self) -> None:
        await self.participant.close()
