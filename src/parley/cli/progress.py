"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from parley.runs import Tally

EVERY = 5.0  # seconds between plain lines
SOON = 2.0  # what takes less needs no progress


@asynccontextmanager
async def progress(tally: Tally, quiet: bool = False) -> AsyncIterator[None]:
    """Show how a run stands while it is played."""
    show = nothing if quiet else live if sys.stderr.isatty() else plain
    showing = asyncio.create_task(show(tally))
    try:
        yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing
        for notice in tally.notices:
            say(notice)


def say(text: str) -> None:
    """A message to the person, which is not data."""
    print(f"parley: {text}", file=sys.stderr, flush=True)


async def nothing(tally: Tally) -> None:
    pass


async def notices(tally: Tally) -> None:
    while tally.notices:
        say(tally.notices.pop(0))


async def plain(tally: Tally) -> None:
    await asyncio.sleep(SOON)
    while True:
        await notices(tally)
        rate = tally.calls / max(time.monotonic() - tally.began, 1e-9)
        extra = f", {tally.failed} failed" if tally.failed else ""
        flight = f"{tally.in_flight} in flight, {tally.calls} calls, {rate:.1f} calls/s{extra}"
        say(f"{tally.done} of {tally.planned} matches, {flight}")
        await asyncio.sleep(EVERY)


async def live(tally: Tally) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    await asyncio.sleep(0.3)
    columns = (
        TextColumn("matches"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[calls]} calls"),
        TextColumn("[red]{task.fields[failed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("", total=None, calls=0, failed="")
        try:
            while True:
                while tally.notices:
                    bar.console.print(f"parley: {tally.notices.pop(0)}", highlight=False)
                failed = f"{tally.failed} failed" if tally.failed else ""
                bar.update(line, total=tally.planned or None, completed=tally.done, calls=tally.calls, failed=failed)
                await asyncio.sleep(0.2)
        finally:
            bar.update(line, total=tally.planned or None, completed=tally.done)
