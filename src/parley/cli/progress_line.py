"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial

from parley import downloads
from parley.runs.progress import Progress
from parley.tables import make_visible, plural

EVERY = 5.0  # seconds between plain lines
SOON = 2.0  # what takes less needs no progress
LONG = 10.0  # a call that takes longer is named


@asynccontextmanager
async def show_progress(progress: Progress, quiet: bool = False) -> AsyncIterator[None]:
    """Show how a run stands while it is played."""
    show = show_nothing if quiet else show_bar if sys.stderr.isatty() else show_lines
    showing = asyncio.create_task(show(progress))
    try:
        with downloads.watch_downloads(partial(setattr, progress, "status_line")):
            yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing
        print_notices(progress)


def say(text: str) -> None:
    """A message to the person, which is not data."""
    print(f"parley: {make_visible(text)}", file=sys.stderr, flush=True)


@contextmanager
def show_downloads() -> Iterator[None]:
    """Show how a download stands before a run."""
    with show_status() as tell, downloads.watch_downloads(tell):
        yield


@contextmanager
def show_status() -> Iterator[Callable[[str], None]]:
    """Show how something stands: one line that changes on a terminal, a line from time to time
    elsewhere."""
    shown, width = time.monotonic() + SOON - EVERY, 0

    def tell(how: str) -> None:
        nonlocal shown, width
        if sys.stderr.isatty():
            print(f"\r{how:<{width}}", end="" if how else "\r", file=sys.stderr, flush=True)
            width = len(how)
        elif how and time.monotonic() - shown > EVERY:
            shown = time.monotonic()
            say(how)

    yield tell


def print_notices(progress: Progress) -> None:
    """Say what the run has to say, once."""
    while progress.notices:
        say(progress.notices.pop(0))


def describe_wait(progress: Progress) -> str:
    """Who keeps everybody waiting, once it is long enough to wonder."""
    slowest = progress.slowest()
    return (
        f"waiting for {slowest[0]} for {slowest[1]:.0f} s" if slowest and slowest[1] > LONG else ""
    )


async def show_nothing(progress: Progress) -> None:
    pass


async def show_lines(progress: Progress) -> None:
    """A line from time to time, for logs."""
    await asyncio.sleep(SOON)
    while True:
        print_notices(progress)
        rate = progress.calls / max(time.monotonic() - progress.began, 1e-9)
        parts = [
            f"{progress.done} of {progress.planned} matches",
            f"{progress.in_flight} in flight",
            plural(progress.calls, "call"),
        ]
        parts += [
            f"{rate:.1f} calls/s",
            f"{progress.failed} failed" if progress.failed else "",
            describe_wait(progress),
        ]
        say(", ".join(filter(None, [*parts, progress.status_line])))
        await asyncio.sleep(EVERY)


async def show_bar(progress: Progress) -> None:
    """A bar that moves, for a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    await asyncio.sleep(0.3)
    columns = (
        TextColumn("matches"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[calls]} calls"),
        TextColumn("{task.fields[status]}"),
        TextColumn("[red]{task.fields[failed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("", total=None, calls=0, failed="", status="")
        try:
            while True:
                while progress.notices:
                    bar.console.print(f"parley: {progress.notices.pop(0)}", highlight=False)
                failed = ", ".join(
                    filter(
                        None,
                        [
                            f"{progress.failed} failed" if progress.failed else "",
                            describe_wait(progress),
                        ],
                    )
                )
                bar.update(
                    line,
                    total=progress.planned or None,
                    completed=progress.done,
                    calls=progress.calls,
                    failed=failed,
                )
                bar.update(line, status=progress.status_line[: max(0, bar.console.width - 70)])
                await asyncio.sleep(0.2)
        finally:
            bar.update(line, total=progress.planned or None, completed=progress.done)
