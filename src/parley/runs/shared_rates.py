"""The rate limits of a model that the workers of a run share: each has a part of them."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from parley.errors import ParleyError
from parley.match.protocol import Call
from parley.providers._endpoint_health import WaitQueue
from parley.store.shared_limits import SLACK, Grants

MINUTE = 60.0
AHEAD = 0.3  # seconds of its own use that a worker reserves at a time
# Seconds for which something reserved may be used after it is due. Together with what the rate
# itself allows, this is less than one second's worth.
LATE, SHORTEST_LATE = 0.5, 0.05
SHARE_EVERY = 1.0  # seconds after which a worker says again how many slots it wants
SHARE_GAP = 0.05  # the shortest time between two such requests


class SharedBucket:
    """A part of one rate, reserved in the store in blocks: several requests, or many tokens, at a
    time. Nobody else uses what is reserved; what is not used soon after it is due is lost."""

    def __init__(self, a_minute: float, name: str, grants: Grants) -> None:
        self.rate = a_minute / MINUTE
        self.most = max(1.0, self.rate)  # what one second adds
        self._name, self._grants = name, grants
        self._blocks: deque[tuple[float, float]] = deque()  # when each begins, and its amount
        self._correction = 0.0  # what was used beyond the estimates
        self._used, self._since = 0.0, time.monotonic()  # since the last block was reserved

    async def reserve(self, amount: float, waiting: int) -> None:
        """Reserve at least an amount. `waiting`: how many calls are going to need as much."""
        amount, now = self._at_most_a_minute(amount), time.monotonic()
        self._drop_late(now, amount)
        missing = amount - sum(block for _, block in self._blocks)
        if missing <= SLACK:
            return
        use = self._used / max(now - self._since, 0.1)
        ahead = min(self.rate * AHEAD, max(use * AHEAD, waiting * amount))
        block = max(missing, float(math.floor(ahead)))
        credit = min(self.most / self.rate, LATE + amount / self.rate)
        correction, self._correction = self._correction, 0.0
        wait = await self._grants.reserve_rate(self._name, self.rate, block, credit, correction)
        self._blocks.append((time.monotonic() + wait, block))
        self._used, self._since = 0.0, now

    def _drop_late(self, now: float, amount: float) -> None:
        """Drop what was due too long ago: an amount of which the first part is older than a second
        would exceed the limit."""
        late = min(LATE, max(SHORTEST_LATE, 1 - amount / self.rate))
        while self._blocks:
            begins, block = self._blocks[0]
            old = math.floor((now - late - begins) * self.rate)
            if old <= 0:
                return
            self._blocks.popleft()
            if old < block:
                self._blocks.appendleft((begins + old / self.rate, block - old))

    def seconds_until(self, amount: float) -> float:
        """How many seconds until an amount that is reserved may be taken. An amount larger than
        what one second adds is taken when that much is due."""
        amount = self._at_most_a_minute(amount)
        left, due = amount, 0.0
        for begins, block in self._blocks:
            due = begins + min(left, block) / self.rate
            left -= block
            if left <= SLACK:
                break
        return max(0.0, due - max(0.0, amount - self.most) / self.rate - time.monotonic())

    def take(self, amount: float) -> None:
        """Take an amount that is reserved."""
        amount = self._at_most_a_minute(amount)
        self._used += amount
        while amount > SLACK:
            begins, block = self._blocks.popleft()
            if block > amount:
                self._blocks.appendleft((begins + amount / self.rate, block - amount))
            amount -= block

    def correct(self, amount: float) -> None:
        """Count more, or less, than was estimated: the next block begins later, or earlier."""
        self._correction += self._at_most_a_minute(amount)

    def _at_most_a_minute(self, amount: float) -> float:
        """An endpoint that miscounts tokens must not block a model for ever."""
        return min(amount, self.rate * MINUTE)


class SharedSlots:
    """How many calls to a model this worker may make at a time: its share of the model's
    `concurrency`, which changes as other workers want slots or need them no longer."""

    def __init__(self, limit: int, name: str, grants: Grants) -> None:
        self._limit, self._name, self._grants = limit, name, grants
        self._used = self._waiting = 0  # calls
        self._peak = 0  # most of both since the share was last asked for
        # `_fair` calls may be in progress; the store counts `_held` for this worker
        self._fair = self._held = 0
        self._queue = WaitQueue(lambda slot: self._release())
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._fault: Exception | None = None

    @asynccontextmanager
    async def slot(self, call: Call) -> AsyncIterator[None]:
        """Wait for a slot, and hold it."""
        self._peak = max(self._peak, self._used + self._waiting + 1)
        if self._used < self._fair and not self._queue:
            self._used += 1
        else:
            await self._wait(call)
        try:
            if self._fault is not None:
                raise self._fault
            yield
        finally:
            self._release()

    async def _wait(self, call: Call) -> None:
        self._waiting += 1
        if self._waiting == 1:
            self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._keep_share())
        try:
            await self._queue.wait(call, lambda: math.inf)
        finally:
            self._waiting -= 1

    def _release(self) -> None:
        self._used -= 1
        self._admit()
        if self._used < self._held and self._held > self._fair:  # another worker waits for it
            self._changed.set()

    def _admit(self) -> None:
        while self._queue and (self._used < self._fair or self._fault is not None):
            self._used += 1
            self._queue.admit_first(0)

    async def _keep_share(self) -> None:
        """Ask for a share as long as calls are made, and give it back at the end."""
        try:
            while True:
                self._changed.clear()
                wanted, self._peak = self._peak, self._used + self._waiting
                self._fair = self._used  # no call begins with a slot that is being given back
                self._fair, self._held = await self._grants.share_slots(
                    self._name, self._limit, min(wanted, self._limit), self._used
                )
                self._admit()
                if not (self._peak or self._held):
                    break
                await asyncio.sleep(SHARE_GAP)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), SHARE_EVERY)
        except ParleyError as fault:  # of the store
            self._fault = fault
            self._admit()
        finally:
            self._task = None

    async def close(self) -> None:
        """Stop asking. The share of a worker that has left goes to the others."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
