"""The event loop that plays: uvloop where it is installed, in a thread of its own where another
loop runs already."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")
LOCK = Lock()
PLAYING: list[None] = []  # one for each run that is played in this process
BEFORE: list[int] = []


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, also from inside an event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(work)
    inside: list[asyncio.Task[Any]] = []

    async def cancellable() -> T:
        inside.append(asyncio.current_task())  # type: ignore[arg-type]
        return await work

    with ThreadPoolExecutor(1) as other:
        playing = other.submit(run, cancellable())
        try:
            return playing.result()
        except KeyboardInterrupt:
            for task in inside:
                task.get_loop().call_soon_threadsafe(task.cancel)
            raise


def run(work: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine."""
    with lazy_collector(), asyncio.Runner(loop_factory=quickest()) as runner:
        return runner.run(work)


@contextmanager
def lazy_collector() -> Iterator[None]:
    """Matches in flight are many objects and few cycles: garbage is looked for less often while any
    run is played."""
    with LOCK:
        if not PLAYING:
            BEFORE[:] = gc.get_threshold()
            gc.set_threshold(20_000, 50, 100)
            gc.freeze()  # what is there already is not looked through again and again
        PLAYING.append(None)
    try:
        yield
    finally:
        with LOCK:
            PLAYING.pop()
            if not PLAYING:
                gc.unfreeze()
                gc.set_threshold(*BEFORE)


def quickest() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed, else what Python brings."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    found: Callable[[], asyncio.AbstractEventLoop] = new_event_loop
    return found
