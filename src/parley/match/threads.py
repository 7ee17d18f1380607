"""Blocking functions beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def in_daemon_thread(function: Callable[..., T], *given: Any, **options: Any) -> T:
    """Call a function in a daemon thread, because it may never return."""
    loop, call = (
        asyncio.get_running_loop(),
        partial(copy_context().run, function, *given, **options),
    )
    answer: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def settle(said: T | None, wrong: BaseException | None) -> None:
        if not answer.done():
            answer.set_result((said, wrong))  # as a value: a future cannot carry every exception

    def work() -> None:
        said, wrong = None, None
        try:
            said = call()
        except BaseException as fault:
            wrong = fault
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, said, wrong)

    threading.Thread(target=work, daemon=True).start()
    said, wrong = await answer
    if wrong is not None:
        raise wrong
    return said  # type: ignore[return-value]
