"""Live pages: one watcher for each run that is followed, shared by all its readers, and the streams
of server-sent events to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

import orjson

from parley.match.threads import in_daemon_thread
from parley.store import RunWatch, Store
from parley.store.types import RunRef
from parley.web.run_renderer import Rendered, RunRenderer

EVERY = 0.5  # seconds between two looks at a run, at least
SHARE = 20  # looks take at most 1/SHARE of a core
CALM = 5.0  # seconds after which a page is drawn again although nothing was written
QUIET = 15.0  # seconds after which a stream sends a sign of life
MOST_STREAMS = 200  # for all runs together
AGAIN = 1_000  # milliseconds after which a browser connects again


@dataclass(frozen=True)
class SentPart:
    """A part as it was sent: the number of the event, and the text."""

    number: int
    mark: str
    html: str


def mark_of(html: str) -> str:
    """A short digest, by which a browser sees whether it has a part already."""
    return blake2b(html.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class RunFollower:
    """Watches one run while somebody reads its page."""

    def __init__(self, store: Store, ref: RunRef, renderer: RunRenderer) -> None:
        self._store, self._ref, self._renderer = store, ref, renderer
        self.readers = 0
        self.number = 0
        self.is_final = False
        self.is_closed = False  # the server stops
        self._parts: dict[str, SentPart] = {}
        self._encoded: dict[int, bytes] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def join(self) -> None:
        self.readers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())

    def leave(self) -> None:
        self.readers -= 1

    async def wait_for_event(self, seen: int, seconds: float) -> None:
        """Wait a while for an event after this number."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.number <= seen and not self.is_closed:
                    await self._news.wait()

    def close(self) -> None:
        """Its readers need not wait any more."""
        self.is_closed = True
        self._news.set()

    def event_after(self, seen: int) -> bytes:
        """The parts that changed after an event, as one event. Readers in step share it."""
        if seen not in self._encoded:
            parts = {
                name: [part.mark, part.html]
                for name, part in self._parts.items()
                if part.number > seen
            }
            text = orjson.dumps(parts)
            end = b"event: end\ndata: \n\n" if self.is_final else b""
            self._encoded[seen] = b"event: parts\ndata: " + text + b"\n\n" + end
        return self._encoded[seen]

    async def _follow(self) -> None:
        watch: RunWatch | None = None
        drawn_at, news = 0.0, object()
        try:
            while self.readers:
                spent = 0.0
                try:
                    if watch is None:
                        watch = await in_daemon_thread(self._store.watch, self._ref)
                        drawn_at = 0.0
                    changed = await in_daemon_thread(watch.has_changed)
                    late = time.monotonic() - drawn_at > CALM
                    if changed or late or self._renderer.news(self._ref) != news:
                        drawn, spent = await in_daemon_thread(self._render)
                        drawn_at, news = time.monotonic(), drawn.news
                        self._publish(drawn)
                except Exception as wrong:  # readers see it, and a later look may be better
                    self._publish(self._renderer.explain(wrong))
                    spent = CALM / SHARE
                    if watch is not None:
                        watch.close()
                        watch = None
                if self.is_final:
                    break
                await asyncio.sleep(max(EVERY, SHARE * spent))
        finally:
            if watch is not None:
                watch.close()

    def _render(self) -> tuple[Rendered, float]:
        """The parts, and the CPU time that they took."""
        began = time.thread_time()
        drawn = self._renderer.render(self._ref)
        return drawn, time.thread_time() - began

    def _publish(self, drawn: Rendered) -> None:
        changed = {
            name: SentPart(self.number + 1, mark_of(html), html)
            for name, html in drawn.parts.items()
            if name not in self._parts or self._parts[name].html != html
        }
        if not changed and not drawn.is_final:
            return
        self.number += 1
        self._parts |= changed
        self.is_final = drawn.is_final
        self._encoded.clear()
        news, self._news = self._news, asyncio.Event()
        news.set()


class LiveRuns:
    """All runs that are followed, and the streams to their readers."""

    def __init__(self, store: Store, renderer: RunRenderer) -> None:
        self._store, self._renderer = store, renderer
        self._followers: dict[RunRef, RunFollower] = {}
        self._streams = 0

    @property
    def is_full(self) -> bool:
        return self._streams >= MOST_STREAMS

    def close(self) -> None:
        """End all streams, so that the server can stop at once."""
        for follower in self._followers.values():
            follower.close()

    async def stream(self, ref: RunRef) -> AsyncIterator[bytes]:
        """Events for one reader until the run is over or the reader leaves."""
        follower = self._followers.get(ref)
        if follower is None or follower.is_final:
            follower = self._followers[ref] = RunFollower(self._store, ref, self._renderer)
        self._streams += 1
        follower.join()
        try:
            yield f"retry: {AGAIN}\n\n".encode()
            seen = 0
            while not follower.is_final or follower.number > seen:
                await follower.wait_for_event(seen, QUIET)
                if follower.is_closed:
                    break
                if follower.number == seen:
                    yield b": still here\n\n"
                    continue
                event, seen = follower.event_after(seen), follower.number
                yield event
        finally:
            self._streams -= 1
            follower.leave()
            if not follower.readers and self._followers.get(ref) is follower:
                del self._followers[ref]
