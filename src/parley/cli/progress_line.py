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


def describe_calls(progress: Progress) -> str:
    """How many calls were made, and of how many."""
    expected = progress.expected_calls
    if expected is None:
        return plural(progress.calls, "call")
    return f"{progress.calls:,} of ~{round(expected):,} calls"


def describe_time_left(progress: Progress) -> str:
    """How long it will take, as long as that can be told."""
    left = progress.seconds_left()
    if left is None:
        return ""
    minutes, seconds = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"~{clock} left"


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
            describe_calls(progress),
            f"{rate:.1f} calls/s",
            describe_time_left(progress),
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
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    await asyncio.sleep(0.3)
    columns = (
        BarColumn(20),
        TextColumn("{task.fields[calls]}"),
        TextColumn("{task.fields[matches]}"),
        TextColumn("{task.fields[status]}"),
        TextColumn("[red]{task.fields[failed]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("", total=None, calls="", matches="", failed="", status="", left="")
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
                    total=progress.expected_calls,
                    completed=progress.calls,
                    calls=describe_calls(progress),
                    matches=f"{progress.done}/{progress.planned} matches",
                    failed=failed,
                    left=describe_time_left(progress),
                )
                bar.update(line, status=progress.status_line[: max(0, bar.console.width - 80)])
                await asyncio.sleep(0.2)
        finally:
            bar.update(line, total=progress.calls or None, completed=progress.calls)
