"""Who plays the matches of a plan: so many at a time, and others instead of those that only wait
for an endpoint that is down."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from parley.plans import MatchSpec
from parley.runs.seats import WAITS


class Stay:
    """A match while it is played, and how many of its calls wait for an endpoint that is down."""

    def __init__(self, changed: Callable[[int], None]) -> None:
        self._changed, self._waits = changed, 0

    def waits(self, more: int) -> None:
        before, self._waits = self._waits, self._waits + more
        if bool(before) != bool(self._waits):
            self._changed(more)


class Crew:
    """Plays matches, `size` of them at a time, as long as `play` says that more may begin.

    A match that waits for an endpoint that is down leaves its place to another. Those that would
    only wait as well are left for later, as long as there are others. When an endpoint is back,
    there may be more matches at a time, until some are over.
    """

    def __init__(
        self,
        size: int,
        play: Callable[[MatchSpec], Awaitable[bool]],
        rests: Callable[[str], bool],
        spare: bool = True,
    ) -> None:
        self._size, self._play, self._rests, self._spare = size, play, rests, spare
        self._waiting: deque[MatchSpec] = deque()
        self._later: deque[MatchSpec] = deque()  # those that would only wait
        self._working: set[asyncio.Task[None]] = set()
        self._playing = self._resting = 0  # matches, and those of them that wait

    async def season(self, specs: Iterable[MatchSpec]) -> None:
        """Play all of these."""
        self._waiting = deque(specs)
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for _ in range(min(self._size, len(self._waiting))):
            self._engage()
        try:
            if self._working:
                await self._over
        finally:
            for task in self._working:
                task.cancel()
            await asyncio.gather(*self._working, return_exceptions=True)

    def _engage(self) -> None:
        task = asyncio.create_task(self._work())
        self._working.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        if not self._working and not self._over.done():
            self._over.set_result(None)

    async def _work(self) -> None:
        while (spec := self._next()) is not None:
            self._playing += 1
            WAITS.set(Stay(self._stays).waits)
            try:
                if not await self._play(spec):
                    self._waiting.clear()
                    self._later.clear()
            finally:
                self._playing -= 1

    def _stays(self, more: int) -> None:
        """A match begins to wait for an endpoint, or does so no longer."""
        self._resting += more
        if more > 0 and self._spare and (self._waiting or self._later):
            self._engage()

    def _next(self) -> MatchSpec | None:
        """The match to be played next; None where there is none, or enough are played without
        it."""
        if self._playing - self._resting * self._spare >= self._size:
            return None
        if not self._resting:
            self._look_again()
            return self._waiting.popleft() if self._waiting else None
        # the others, and those that were left for later: an endpoint of theirs may be back
        for _ in range(2):
            while self._waiting:
                spec = self._waiting.popleft()
                if not any(self._rests(alias) for alias in spec.seats.values()):
                    return spec
                self._later.append(spec)
            self._look_again()
        return self._waiting.popleft() if self._waiting and self._playing < self._size else None

    def _look_again(self) -> None:
        """Those that were left for later come first."""
        if self._later:
            self._waiting, self._later = self._later + self._waiting, deque()
