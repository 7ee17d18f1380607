"""Participants at their places: counted, limited, and left alone once they cannot answer or nothing new may be asked."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from parley.errors import Halted, ParticipantError, Refused, Rejected
from parley.participants import Participant
from parley.pool import View
from parley.providers.protocol import Reply

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

    def slowest(self) -> tuple[str, float] | None:
        """Who has been waited for longest, and for how many seconds."""
        began = [(min(since.values()), alias) for alias, since in self.waiting.items() if since]
        return (min(began)[1], time.monotonic() - min(began)[0]) if began else None


class Brake:
    """Stops a run gently: calls in flight are awaited and recorded, nothing new is asked."""

    def __init__(self) -> None:
        self.reason = ""

    def pull(self, reason: str) -> None:
        self.reason = self.reason or reason

    def gate(self) -> None:
        if self.reason:
            raise Halted(self.reason)


class Placed:
    """A participant under its alias: so many calls at a time, and none once it has proved unable to answer."""

    def __init__(self, alias: str, participant: Participant, most: int | None, tally: Tally, brake: Brake) -> None:
        self.alias, self.participant, self.privy = alias, participant, participant.privy
        self._tally, self._brake = tally, brake
        self._places = asyncio.Semaphore(most or 1)
        self.reply = self._queued if most else self._asked
        self._failures, self._down = 0, ""
        self._since = tally.waiting.setdefault(alias, {})

    async def _queued(self, view: View) -> Reply | str:
        async with self._places:
            self._brake.gate()  # it may have been pulled while this call waited for its place
            return await self._asked(view)

    async def _asked(self, view: View) -> Reply | str:
        if self._down:
            raise Refused(self._down)
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
