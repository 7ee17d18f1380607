"""The match scheduler: while an endpoint is down, matches of other models take its slots."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice

from parley.match.protocol import Call
from parley.plans import MatchSpec
from parley.rules.pool import Seat
from parley.runs.progress import Progress, StopSignal

# matches that are postponed because of an endpoint before Parley stops looking for others
MOST_POSTPONED = 10_000


class MatchSlot(Call):
    """The slot of a match while it is played. All calls of the match go through it."""

    __slots__ = ("_changed", "_progress", "_spec", "_stop", "_waiting")

    def __init__(
        self, spec: MatchSpec, stop: StopSignal, progress: Progress, changed: Callable[[int], None]
    ) -> None:
        self._spec = spec
        self._stop, self._progress, self._changed = stop, progress, changed
        self._waiting = 0  # calls that wait for an endpoint that is down

    def match_number(self) -> int | None:
        return self._spec.number

    def seat_asked(self, seat: Seat) -> None:
        self._progress.seats_asked[self._spec.seats[seat]] += 1

    def seat_answered(self, seat: Seat) -> None:
        self._progress.seats_asked[self._spec.seats[seat]] -= 1

    def check_running(self) -> None:
        self._stop.check()

    def waiting(self, endpoint_down: bool) -> None:
        """Count one more waiting call, or one less."""
        more, before = 1 if endpoint_down else -1, self._waiting
        self._waiting += more
        if bool(before) != bool(self._waiting):
            self._changed(more)

    def notice(self, text: str) -> None:
        self._progress.notify(text)


class MatchQueue:
    """Matches that have not begun. They are taken from their sources when they are needed."""

    def __init__(self) -> None:
        self._sources: deque[Iterator[MatchSpec]] = deque()
        self._taken: deque[MatchSpec] = deque()

    def __bool__(self) -> bool:
        return self.look_ahead(1) > 0

    def look_ahead(self, most: int) -> int:
        """How many matches there are, counted up to `most`."""
        while self._sources and (missing := most - len(self._taken)) > 0:
            self._taken.extend(islice(self._sources[0], missing))
            if len(self._taken) < most:
                self._sources.popleft()
        return max(0, min(most, len(self._taken)))

    def extend(self, specs: Iterable[MatchSpec]) -> None:
        """Add matches after all others."""
        self._sources.append(iter(specs))

    def popleft(self) -> MatchSpec:
        """Take the next match."""
        self.look_ahead(1)
        return self._taken.popleft()

    def put_back(self, specs: deque[MatchSpec]) -> None:
        """Put matches back, before all others."""
        self._taken = specs + self._taken

    def clear(self) -> None:
        """Drop all matches."""
        self._sources.clear()
        self._taken.clear()


class Scheduler:
    """Plays matches, `size` of them at a time, as long as `play` says that more may begin.

    A match that waits for an endpoint that is down gives its slot to another match. Matches that
    would wait for the same endpoint are postponed as long as there are others. When an endpoint is
    back, more than `size` matches may run at a time until some of them have ended.
    """

    def __init__(
        self,
        size: int,
        play: Callable[[MatchSpec, MatchSlot], Awaitable[bool]],
        is_down: Callable[[str], bool],
        stop: StopSignal,
        progress: Progress,
        give_up_slots: bool = True,
    ) -> None:
        self._stop, self._progress = stop, progress
        self._size, self._play, self._is_down, self._give_up_slots = (
            size,
            play,
            is_down,
            give_up_slots,
        )
        self._queue = MatchQueue()
        self._postponed: deque[MatchSpec] = deque()  # matches that would only wait
        self._tasks: set[asyncio.Task[None]] = set()
        self._playing = self._on_hold = 0  # matches, and those of them that wait for an endpoint
        self._changed = asyncio.Event()  # a match has ended, or waits for an endpoint
        self._idle = asyncio.Event()
        self._idle.set()

    async def play_all(self, specs: Iterable[MatchSpec]) -> None:
        """Play all these matches."""
        self.add(specs)
        try:
            await self.wait_until_idle()
        finally:
            await self.cancel()

    def add(self, specs: Iterable[MatchSpec]) -> None:
        """Begin to play these matches, as far as there are free slots; the others wait."""
        self._queue.extend(specs)
        busy = len(self._tasks) - self._on_hold * self._give_up_slots
        for _ in range(self._queue.look_ahead(self._size - busy)):
            self._start_task()

    @property
    def free(self) -> int:
        """How many slots have neither a match nor one that waits for them."""
        taken = self._playing - self._on_hold * self._give_up_slots
        return max(
            0, self._size - taken - self._queue.look_ahead(self._size) - len(self._postponed)
        )

    async def wait_until_idle(self) -> None:
        """Wait until all matches have ended."""
        await self._idle.wait()

    async def wait_for_change(self) -> None:
        """Wait until a match has ended or has begun to wait for an endpoint."""
        self._changed.clear()
        await self._changed.wait()

    async def cancel(self) -> None:
        """Stop all matches at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start_task(self) -> None:
        self._idle.clear()
        task = asyncio.create_task(self._work())
        self._tasks.add(task)
        task.add_done_callback(self._remove_task)

    def _remove_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._idle.set()

    async def _work(self) -> None:
        while (spec := self._next()) is not None:
            self._playing += 1
            slot = MatchSlot(spec, self._stop, self._progress, self._count_waiting)
            try:
                if not await self._play(spec, slot):
                    self._queue.clear()
                    self._postponed.clear()
            finally:
                self._playing -= 1
                self._changed.set()

    def _count_waiting(self, more: int) -> None:
        """Count a match that starts or stops waiting for an endpoint; another may use its slot."""
        self._on_hold += more
        self._changed.set()
        if more > 0 and self._give_up_slots and (self._queue or self._postponed):
            self._start_task()

    def _next(self) -> MatchSpec | None:
        """The match to play next. None if there is none or all slots are taken."""
        if self._playing - self._on_hold * self._give_up_slots >= self._size:
            return None
        if not self._on_hold:
            self._requeue_postponed()
            return self._queue.popleft() if self._queue else None
        # first the others, then the postponed ones: their endpoint may be back
        for _ in range(2):
            while self._queue and len(self._postponed) < MOST_POSTPONED:
                spec = self._queue.popleft()
                if not any(self._is_down(alias) for alias in spec.seats.values()):
                    return spec
                self._postponed.append(spec)
            self._requeue_postponed()
        return self._queue.popleft() if self._queue and self._playing < self._size else None

    def _requeue_postponed(self) -> None:
        """Put postponed matches back at the front of the queue."""
        if self._postponed:
            self._queue.put_back(self._postponed)
            self._postponed.clear()
