"""Runs coroutines from synchronous code: with uvloop if it is installed, in a thread of its own if
an event loop is running already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and wait for it, also from inside an event loop, as in a notebook."""
    if not is_inside_loop():
        return run_in_new_loop(work)
    inside: list[asyncio.Task[Any]] = []

    async def cancellable() -> T:
        inside.append(asyncio.current_task())  # type: ignore[arg-type]
        return await work

    with ThreadPoolExecutor(1) as other:
        playing = other.submit(run_in_new_loop, cancellable())
        try:
            return playing.result()
        except KeyboardInterrupt:
            for task in inside:
                task.get_loop().call_soon_threadsafe(task.cancel)
            raise


def is_inside_loop() -> bool:
    """Whether an event loop runs in this thread, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_in_new_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new event loop and wait for it."""
    found: list[T] = []

    async def keep() -> None:
        # a task that has a result is formatted with it when its loop ends (`signal.getsignal`
        # does that), and a run's result would draw its table
        found.append(await work)

    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(keep())
    return found[0]


def find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's factory if it is installed; None stands for Python's own."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    found: Callable[[], asyncio.AbstractEventLoop] = new_event_loop
    return found
