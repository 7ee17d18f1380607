"""How an endpoint bears up: one back-off for all calls to it, fewer at a time when it says too
many, none while it is down."""

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
from parley.providers._secrets import redacted

FIRST_PAUSE = 0.5  # seconds after the first fault; each further pause is twice as long
LONGEST_PAUSE = 30.0
# faults in a row, of any calls, after which an endpoint that worked before counts as down
BREAK = 5
FIRST_REST, LONGEST_REST = 10.0, 120.0  # seconds for which one that is down is left alone
WORDS = 600  # characters of a fault that are kept
NOTED = 4.0  # seconds of being told to wait after which the person is told so
TICK = 0.5  # seconds after which those who wait look whether they still want to


class Pause(Exception):
    """A fault that may pass: try again after a while. What it quotes of an answer is without any
    key."""

    def __init__(
        self,
        fault: str,
        seconds: float = 0,
        limited: bool = False,
        unsure: bool = False,
        kind: FaultKind = "",
    ) -> None:
        super().__init__(redacted(fault)[:WORDS])
        self.kind = kind
        self.seconds = seconds  # what the endpoint asks for
        self.limited = limited  # too many at once: no fault of this call
        self.unsure = unsure  # it broke off after the request had left: it may have been paid


class Line:
    """Those who wait for a place, in the order in which they came. One timer looks after all of
    them."""

    def __init__(self, unused: Callable[[int], None]) -> None:
        self._waiting: deque[tuple[asyncio.Future[int | Exception], Call, Callable[[], float]]] = (
            deque()
        )
        self._unused = unused  # takes back the place of one who was gone when called
        self._ticking = False

    def __bool__(self) -> bool:
        while self._waiting and self._waiting[0][0].done():  # given up
            self._waiting.popleft()
        return bool(self._waiting)

    async def wait(self, call: Call, ends: Callable[[], float]) -> int:
        """Wait for a place, as long as the run goes on and one's own time lasts; which one it
        is."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int | Exception] = loop.create_future()
        self._waiting.append((future, call, ends))
        if not self._ticking:
            self._ticking = True
            loop.call_later(TICK, self._tick)
        try:
            found = await future
        except asyncio.CancelledError:
            if not future.cancelled() and isinstance(place := future.result(), int):
                self._unused(place)
            raise
        if isinstance(found, Exception):
            raise found
        return found

    def admit_first(self, place: int) -> None:
        """Give a place to the first one; there must be one."""
        self._waiting.popleft()[0].set_result(place)

    def _tick(self) -> None:
        """Send away those whose run stops or whose time is over."""
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


class Patience:
    """What all calls to one endpoint share. While all is well it only counts."""

    def __init__(self, place: str, name: str = "") -> None:
        self.place, self.name = place, name or place
        self.flying = 0
        self.limit = math.inf  # calls at a time
        self.down = False
        self._until = 0.0  # nothing leaves before
        self._answered = 0.0  # when anybody was answered last
        self._level = self._rests = self._faults = 0
        self._proven = False
        # calls that tried whether one that was down is back, and the one that does now
        self._probes = self._probing = 0
        self._line = Line(self.leave)
        self._waiting: dict[object, Call] = {}
        self._waking = self._told = False
        self._limited = 0.0  # since when it says that there are too many

    @property
    def clear(self) -> bool:
        """Whether a call may leave at once."""
        return self._bears() and not self._line

    def _bears(self) -> bool:
        """Whether there is a place. One that is down is first tried by a single call."""
        if self._until and time.monotonic() < self._until:
            return False
        return not self._probing if self.down else self.flying < self.limit

    def enter(self) -> int:
        """Take a place: 0, or the number of the one call that tries an endpoint which is down."""
        self.flying += 1
        if not self.down:
            return 0
        self._probes += 1
        self._probing = self._probes
        return self._probing

    async def admit(self, seconds: float, call: Call) -> tuple[int, float]:
        """Wait for a place behind all who came before, until nobody has been answered for so long.

        As `enter`; and for how long others were still answered meanwhile, which is not counted
        against this call. The call learns while the endpoint is down.
        """
        began, key = time.monotonic(), object()
        self._wake_up()
        self._waiting[key] = call
        call.waiting(self.down)
        try:
            place = await self._line.wait(call, lambda: max(began, self._answered) + seconds)
        finally:
            del self._waiting[key]
            call.waiting(False)
        return place, max(0.0, self._answered - began)

    def shut(self, place: int) -> bool:
        """Whether a call must not leave although it has its place: others were told to wait after
        it was given."""
        return (self.down and not place) or (self._until > 0 and time.monotonic() < self._until)

    def leave(self, place: int) -> None:
        """A call is back, however it ended, and gives up its place."""
        self.flying -= 1
        if place == self._probing:
            self._probing = 0
        if self._line:
            self._let_in()

    def _let_in(self) -> None:
        while self._line and self._bears():
            self._line.admit_first(self.enter())
        if self._line:
            self._wake_up()

    def _wake_up(self) -> None:
        """Set the timer that lets in those who wait when the pause is over.

        The pause may have ended since it was last looked at. If no call is in flight then, nobody
        else would let them in.
        """
        rest = self._until - time.monotonic()
        if not self._waking and (rest > 0 or self._bears()):
            self._waking = True
            asyncio.get_running_loop().call_later(max(rest, 0.0), self._over)

    def _over(self) -> None:
        self._waking = False
        self._let_in()

    def well(self, call: Call) -> None:
        """An answer came."""
        self._level = self._faults = self._rests = 0
        self._proven, self._answered = True, time.monotonic()
        if self.down:
            call.notice(f"{self.place} answers again")
            self._until = 0.0
            self._turns(False)
        if self.limit != math.inf:
            self.limit += 1 / self.limit

    def trouble(self, pause: Pause, call: Call) -> None:
        """An answer that speaks against asking on, before its call leaves its place: too many at
        once, or a fault there."""
        now = time.monotonic()
        if pause.limited:
            if now >= self._until + LONGEST_PAUSE:  # it was not for long
                self._limited = now
            if now >= self._until:  # the first to be told so speaks for all that were in flight
                self._level += 1
                self.limit = max(1.0, min(self.limit, self.flying) / 2)
                self._until = now + usual(self._level - 1)
            self._until = max(self._until, now + pause.seconds)
            self._tell(pause, call)
        else:
            if self.down and now < self._until:
                return  # it left before the others had found out
            self._faults += 1
            if self._proven and (self.down or self._faults >= BREAK):
                rest = min(LONGEST_REST, FIRST_REST * 2.0 ** min(self._rests, 10))
                self._until, self._rests, self._faults = (
                    now + max(rest, pause.seconds),
                    self._rests + 1,
                    0,
                )
                call.notice(
                    f"{self.place} fails ({pause}): it is left alone for {rest:.0f} s, "
                    f"other models go on"
                )
                self._turns(True)

    def _turns(self, down: bool) -> None:
        self.down = down
        for call in list(self._waiting.values()):
            call.waiting(down)

    def _tell(self, pause: Pause, call: Call) -> None:
        """Say once that one has to wait, if it is for more than a moment."""
        if self._until - self._limited >= NOTED and not self._told:
            self._told = True
            call.notice(
                f"{self.name} is told to wait ({str(pause)[:100]}): fewer are asked at a time"
            )


def usual(tries: int) -> float:
    """How long to wait after so many tries: twice as long each time, never for all calls at the
    same moment."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries, 20)) * random.uniform(0.5, 1))


async def patient(seconds: float, call: Call) -> None:
    """Wait before a further try, unless none is wanted any more."""
    call.check_running()
    ends = time.monotonic() + seconds
    while (rest := ends - time.monotonic()) > 0:
        await asyncio.sleep(min(rest, TICK))
        call.check_running()
    call.check_running()


KNOWN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Patience]] = WeakKeyDictionary()


def patience_with(endpoint: str, place: str, name: str = "") -> Patience:
    """The one patience of this loop with an endpoint, whichever of its models is asked."""
    known = KNOWN.setdefault(asyncio.get_running_loop(), {})
    return known.get(endpoint) or known.setdefault(endpoint, Patience(place, name))
