"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial

from parley import downloads as packaged
from parley.runs.progress import Progress
from parley.tables import make_visible, plural

EVERY = 5.0  # seconds between plain lines
SOON = 2.0  # what takes less needs no progress
LONG = 10.0  # a call that takes longer is named


@asynccontextmanager
async def show_progress(tally: Progress, quiet: bool = False) -> AsyncIterator[None]:
    """Show how a run stands while it is played."""
    show = show_nothing if quiet else show_bar if sys.stderr.isatty() else show_lines
    showing = asyncio.create_task(show(tally))
    try:
        with packaged.watch_downloads(partial(setattr, tally, "status_line")):
            yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing
        print_notices(tally)


def say(text: str) -> None:
    """A message to the person, which is not data."""
    print(f"parley: {make_visible(text)}", file=sys.stderr, flush=True)


@contextmanager
def show_downloads() -> Iterator[None]:
    """Show how a download stands before a run."""
    with show_status() as tell, packaged.watch_downloads(tell):
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


def print_notices(tally: Progress) -> None:
    """Say what the run has to say, once."""
    while tally.notices:
        say(tally.notices.pop(0))


def describe_wait(tally: Progress) -> str:
    """Who keeps everybody waiting, once it is long enough to wonder."""
    slowest = tally.slowest()
    return (
        f"waiting for {slowest[0]} for {slowest[1]:.0f} s" if slowest and slowest[1] > LONG else ""
    )


async def show_nothing(tally: Progress) -> None:
    pass


async def show_lines(tally: Progress) -> None:
    """A line from time to time, for logs."""
    await asyncio.sleep(SOON)
    while True:
        print_notices(tally)
        rate = tally.calls / max(time.monotonic() - tally.began, 1e-9)
        parts = [
            f"{tally.done} of {tally.planned} matches",
            f"{tally.in_flight} in flight",
            plural(tally.calls, "call"),
        ]
        parts += [
            f"{rate:.1f} calls/s",
            f"{tally.failed} failed" if tally.failed else "",
            describe_wait(tally),
        ]
        say(", ".join(filter(None, [*parts, tally.status_line])))
        await asyncio.sleep(EVERY)


async def show_bar(tally: Progress) -> None:
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
        TextColumn("{task.fields[outlook]}"),
        TextColumn("[red]{task.fields[failed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("", total=None, calls=0, failed="", outlook="")
        try:
            while True:
                while tally.notices:
                    bar.console.print(f"parley: {tally.notices.pop(0)}", highlight=False)
                failed = ", ".join(
                    filter(
                        None,
                        [f"{tally.failed} failed" if tally.failed else "", describe_wait(tally)],
                    )
                )
                bar.update(
                    line,
                    total=tally.planned or None,
                    completed=tally.done,
                    calls=tally.calls,
                    failed=failed,
                )
                bar.update(line, outlook=tally.status_line[: max(0, bar.console.width - 70)])
                await asyncio.sleep(0.2)
        finally:
            bar.update(line, total=tally.planned or None, completed=tally.done)
