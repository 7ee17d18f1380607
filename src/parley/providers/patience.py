"""How an endpoint bears up: one back-off for all calls to it, fewer at a time when it says too many, none while it is down."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from weakref import WeakKeyDictionary

AGAIN: ContextVar[Callable[[], None]] = ContextVar("again", default=lambda: None)  # raises once nothing new may be asked
NOTICE: ContextVar[Callable[[str], None]] = ContextVar("notice", default=lambda text: None)  # tells the person

FIRST_PAUSE = 0.5  # seconds after the first fault; each further pause is twice as long
LONGEST_PAUSE = 30.0
BREAK = 5  # faults in a row, of any calls, after which an endpoint that worked before counts as down
FIRST_REST, LONGEST_REST = 10.0, 120.0  # seconds for which one that is down is left alone


class Pause(Exception):
    """A fault that may pass: try again after a while."""

    def __init__(self, fault: str, seconds: float = 0, limited: bool = False, unsure: bool = False) -> None:
        super().__init__(fault)
        self.seconds = seconds  # what the endpoint asks for
        self.limited = limited  # too many at once: no fault of this call
        self.unsure = unsure  # it broke off after the request had left: it may have been paid


class Patience:
    """What all calls to one endpoint share. While all is well it only counts."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.flying = 0
        self.limit = math.inf  # calls at a time
        self.down = False
        self._until = 0.0  # nothing leaves before
        self._level = self._rests = self._faults = 0
        self._probing = self._proven = False
        self._changed = asyncio.Event()

    @property
    def clear(self) -> bool:
        """Whether a call may leave at once."""
        return not self.down and self.flying < self.limit and (not self._until or time.monotonic() >= self._until)

    async def admit(self, ends: float) -> None:
        """Wait until a call may leave, or until its time is over. One that is down is first tried by a single call."""
        while not self.clear and not (self.down and not self._probing and time.monotonic() >= self._until):
            rest = max(0.0, self._until - time.monotonic()) or 0.5
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(rest, 0.5, max(0.0, ends - time.monotonic())) + 1e-3)
            AGAIN.get()()
            if time.monotonic() >= ends:
                raise TimeoutError

    def enter(self) -> bool:
        """A call leaves; whether it is the one that tries an endpoint which is down."""
        self.flying += 1
        probe = self.down and not self._probing
        self._probing = self._probing or probe
        return probe

    def leave(self, probe: bool) -> None:
        """A call is back, however it ended."""
        self.flying -= 1
        if probe:
            self._probing = False
        self._changed.set()

    def well(self) -> None:
        """An answer came."""
        self._level = self._faults = self._rests = 0
        self._proven = True
        if self.down:
            NOTICE.get()(f"{self.place} answers again")
            self.down, self._until = False, 0.0
        if self.limit != math.inf:
            self.limit += 1 / self.limit

    def trouble(self, pause: Pause) -> None:
        """An answer that speaks against asking on: too many at once, or a fault on the other side."""
        now = time.monotonic()
        if pause.limited:
            if now >= self._until:  # the first to be told so speaks for all that were in flight
                self._level += 1
                self.limit = max(1.0, min(self.limit, self.flying + 1) / 2)
                self._until = now + usual(self._level - 1)
            self._until = max(self._until, now + pause.seconds)
        else:
            if self.down and now < self._until:
                return  # it left before the others had found out
            self._faults += 1
            if self._proven and (self.down or self._faults >= BREAK):
                rest = min(LONGEST_REST, FIRST_REST * 2.0 ** min(self._rests, 10))
                self._until, self._rests, self._faults = now + max(rest, pause.seconds), self._rests + 1, 0
                NOTICE.get()(f"{self.place} fails ({pause}): it is left alone for {rest:.0f} s, other models go on")
                self.down = True


def usual(tries: int) -> float:
    """How long to wait after so many tries: twice as long each time, never for all calls at the same moment."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries, 20)) * random.uniform(0.5, 1))


async def patient(seconds: float) -> None:
    """Wait before a further try, unless none is wanted any more."""
    AGAIN.get()()
    ends = time.monotonic() + seconds
    while (rest := ends - time.monotonic()) > 0:
        await asyncio.sleep(min(rest, 0.5))
        AGAIN.get()()
    AGAIN.get()()


KNOWN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Patience]] = WeakKeyDictionary()


def patience_with(endpoint: str, place: str) -> Patience:
    """The one patience of this loop with an endpoint, whichever of its models is asked."""
    known = KNOWN.setdefault(asyncio.get_running_loop(), {})
    return known.get(endpoint) or known.setdefault(endpoint, Patience(place))
