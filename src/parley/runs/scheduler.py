"""Schedules matches; while an endpoint is down, matches of other models take the free slots."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from parley.match.protocol import Call
from parley.plans import MatchSpec
from parley.runs.progress import Brake, Tally


class MatchSlot(Call):
    """The slot of a match while it is played: all calls of the match go through it."""

    __slots__ = ("_changed", "_stop", "_tally", "_waiting")

    def __init__(self, stop: Brake, tally: Tally, changed: Callable[[int], None]) -> None:
        self._stop, self._tally, self._changed = stop, tally, changed
        self._waiting = 0  # calls that wait for an endpoint that is down

    def check_running(self) -> None:
        self._stop.gate()

    def waiting(self, endpoint_down: bool) -> None:
        """One more call waits, or one less."""
        more, before = 1 if endpoint_down else -1, self._waiting
        self._waiting += more
        if bool(before) != bool(self._waiting):
            self._changed(more)

    def notice(self, text: str) -> None:
        self._tally.hear(text)


class Crew:
    """Plays matches, `size` of them at a time, as long as `play` says that more may begin.

    A match that waits for an endpoint that is down gives its slot to another. Matches that would
    wait for it as well come later, as long as there are others. When an endpoint is back, more than
    `size` matches may be played at a time, until some are over.
    """

    def __init__(
        self,
        size: int,
        play: Callable[[MatchSpec, MatchSlot], Awaitable[bool]],
        rests: Callable[[str], bool],
        stop: Brake,
        tally: Tally,
        spare: bool = True,
    ) -> None:
        self._stop, self._tally = stop, tally
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
            slot = MatchSlot(self._stop, self._tally, self._stays)
            try:
                if not await self._play(spec, slot):
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
