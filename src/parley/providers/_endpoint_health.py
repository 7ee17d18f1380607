"""Back-off after HTTP 429, 503 and lost connections, shared by all calls to an endpoint.

If an endpoint answers 429, fewer calls are sent at a time. While it is down, a single call tries
whether it is back. The limits that a user sets are in `parley.runs.rate_limits`.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

from parley.errors import FaultKind
from parley.match.protocol import Call
from parley.providers._secrets import redact

FIRST_PAUSE = 0.5  # seconds after the first failure; each further pause is twice as long
LONGEST_PAUSE = 30.0
# failures in a row, of any calls, after which an endpoint that worked before counts as down
BREAK = 5
FIRST_REST, LONGEST_REST = 10.0, 120.0  # seconds without calls for an endpoint that is down
WORDS = 600  # characters of a message that are kept
NOTED = 4.0  # seconds of waiting after which the user gets a notice
TICK = 0.5  # seconds between two checks of waiting calls


class Retryable(Exception):
    """A failure that may pass: the request is sent again after a pause. Keys in the message are
    masked."""

    def __init__(
        self,
        fault: str,
        seconds: float = 0,
        limited: bool = False,
        unsure: bool = False,
        kind: FaultKind = "",
        status: int = 0,
    ) -> None:
        super().__init__(redact(fault)[:WORDS])
        self.kind, self.status = kind, status  # of HTTP, 0 if there was no answer
        self.seconds = seconds  # the pause that the endpoint asks for
        self.limited = limited  # too many requests: not the fault of this call
        self.unsure = unsure  # it broke off after the request was sent: it may be billed


class WaitQueue:
    """Calls that wait for a slot, first come first served. One timer checks all of them."""

    def __init__(self, release: Callable[[int], None]) -> None:
        self._waiting: deque[tuple[asyncio.Future[int | Exception], Call, Callable[[], float]]] = (
            deque()
        )
        self._release = release  # takes back the slot of a call that was cancelled
        self._ticking = False

    def __bool__(self) -> bool:
        while self._waiting and self._waiting[0][0].done():  # cancelled
            self._waiting.popleft()
        return bool(self._waiting)

    async def wait(self, call: Call, ends: Callable[[], float]) -> int:
        """Wait for a slot until the run stops or `ends` has passed; returns the slot."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int | Exception] = loop.create_future()
        self._waiting.append((future, call, ends))
        if not self._ticking:
            self._ticking = True
            loop.call_later(TICK, self._tick)
        try:
            found = await future
        except asyncio.CancelledError:
            if not future.cancelled() and isinstance(slot := future.result(), int):
                self._release(slot)
            raise
        if isinstance(found, Exception):
            raise found
        return found

    def admit_first(self, slot: int) -> None:
        """Give a slot to the first call in the queue; there must be one."""
        self._waiting.popleft()[0].set_result(slot)

    def _tick(self) -> None:
        """End the wait of calls whose run stops or whose time is over."""
        now, before, self._waiting = time.monotonic(), self._waiting, deque()
        for one in before:
            future, call, ends = one
            if future.done():
                continue
            try:
                call.check_running()
                if now >= ends():
                    raise TimeoutError
                self._waiting.append(one)
            except Exception as fault:
                future.set_result(fault)
        self._ticking = bool(self._waiting)
        if self._ticking:
            asyncio.get_running_loop().call_later(TICK, self._tick)


class EndpointHealth:
    """The state of one endpoint, shared by all calls to it."""

    def __init__(self, address: str, name: str = "") -> None:
        self.address, self.name = address, name or address
        self.in_flight = 0
        self.limit = math.inf  # calls at a time
        self.down = False
        self._until = 0.0  # nothing is sent before
        self._answered = 0.0  # when any call was answered last
        self._pauses = self._rest_count = self._failures = 0
        self._has_answered = False
        # calls that tried whether the endpoint is back, and the one that does now
        self._probes = self._probing = 0
        self._queue = WaitQueue(self.release_slot)
        self._waiting: dict[object, Call] = {}
        self._timer_set = self._notified = False
        self._limited = 0.0  # since when the endpoint answers 429

    @property
    def has_free_slot(self) -> bool:
        """Whether a call may be sent at once."""
        return self._can_send() and not self._queue

    def _can_send(self) -> bool:
        """Whether there is a slot. An endpoint that is down is first tried by a single call."""
        if self._until and time.monotonic() < self._until:
            return False
        return not self._probing if self.down else self.in_flight < self.limit

    def take_slot(self) -> int:
        """Take a slot: 0, or the number of the single call that tries an endpoint that is down."""
        self.in_flight += 1
        if not self.down:
            return 0
        self._probes += 1
        self._probing = self._probes
        return self._probing

    async def wait_for_slot(self, seconds: float, call: Call) -> tuple[int, float]:
        """Wait in the queue for a slot, until no call has been answered for `seconds` seconds.

        Returns the slot as `take_slot` does, and for how long other calls were answered meanwhile:
        this does not count against the call's deadline. The call learns when the endpoint is down.
        """
        began, key = time.monotonic(), object()
        self._set_timer()
        self._waiting[key] = call
        call.waiting(self.down)
        try:
            slot = await self._queue.wait(call, lambda: max(began, self._answered) + seconds)
        finally:
            del self._waiting[key]
            call.waiting(False)
        return slot, max(0.0, self._answered - began)

    def must_wait(self, slot: int) -> bool:
        """Whether a call with a slot must not be sent: a pause began after it got the slot."""
        return (self.down and not slot) or (self._until > 0 and time.monotonic() < self._until)

    def release_slot(self, slot: int) -> None:
        """Give back the slot of a call, however the call ended."""
        self.in_flight -= 1
        if slot == self._probing:
            self._probing = 0
        if self._queue:
            self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._queue and self._can_send():
            self._queue.admit_first(self.take_slot())
        if self._queue:
            self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer that admits waiting calls when the pause is over.

        The pause may have ended since it was last checked. If no call is in flight then, nothing
        else would admit them.
        """
        rest = self._until - time.monotonic()
        if not self._timer_set and (rest > 0 or self._can_send()):
            self._timer_set = True
            asyncio.get_running_loop().call_later(max(rest, 0.0), self._end_pause)

    def _end_pause(self) -> None:
        self._timer_set = False
        self._admit_waiting()

    def succeeded(self, call: Call) -> None:
        """Note that a call was answered."""
        self._pauses = self._failures = self._rest_count = 0
        self._has_answered, self._answered = True, time.monotonic()
        if self.down:
            call.notice(f"{self.address} answers again")
            self._until = 0.0
            self._set_down(False)
        if self.limit != math.inf:
            self.limit += 1 / self.limit

    def failed(self, problem: Retryable, call: Call) -> None:
        """Note that a call failed, before it releases its slot: begin or extend a pause."""
        now = time.monotonic()
        if problem.limited:
            if now >= self._until + LONGEST_PAUSE:  # the last pause was long ago
                self._limited = now
            if now >= self._until:  # the first 429 counts for all calls in flight
                self._pauses += 1
                self.limit = max(1.0, min(self.limit, self.in_flight) / 2)
                self._until = now + backoff_seconds(self._pauses - 1)
            self._until = max(self._until, now + problem.seconds)
            self._notify_limited(problem, call)
        else:
            if self.down and now < self._until:
                return  # it was sent before the endpoint was known to be down
            self._failures += 1
            if self._has_answered and (self.down or self._failures >= BREAK):
                rest = min(LONGEST_REST, FIRST_REST * 2.0 ** min(self._rest_count, 10))
                self._until, self._rest_count, self._failures = (
                    now + max(rest, problem.seconds),
                    self._rest_count + 1,
                    0,
                )
                call.notice(
                    f"{self.address} is failing ({problem}), so Parley sends it no calls for "
                    f"{rest:.0f} s; other models continue"
                )
                self._set_down(True)

    def _set_down(self, down: bool) -> None:
        self.down = down
        for call in list(self._waiting.values()):
            call.waiting(down)

    def _notify_limited(self, problem: Retryable, call: Call) -> None:
        """Tell the user once that the endpoint limits calls, if it takes more than a moment."""
        if self._until - self._limited >= NOTED and not self._notified:
            self._notified = True
            call.notice(
                f"{self.name} is rate limited ({str(problem)[:100]}), so Parley now sends fewer "
                "requests at a time"
            )


def backoff_seconds(tries: int) -> float:
    """How long to wait after a number of tries: twice as long each time, with random jitter."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries, 20)) * random.uniform(0.5, 1))


async def sleep_unless_stopped(seconds: float, call: Call) -> None:
    """Sleep before the next try; raise `Halted` as soon as the run stops."""
    call.check_running()
    ends = time.monotonic() + seconds
    while (rest := ends - time.monotonic()) > 0:
        await asyncio.sleep(min(rest, TICK))
        call.check_running()
    call.check_running()


KNOWN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, EndpointHealth]] = WeakKeyDictionary()


def health_of_endpoint(endpoint: str, address: str, name: str = "") -> EndpointHealth:
    """The state of an endpoint, shared by all transports of this event loop."""
    known = KNOWN.setdefault(asyncio.get_running_loop(), {})
    return known.get(endpoint) or known.setdefault(endpoint, EndpointHealth(address, name))
