"""Shows the progress of a run on stderr: a bar in a terminal, a line that changes in a notebook,
plain lines elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

from parley.activity import watch_activity
from parley.runs.progress import BatchProgress, Progress
from parley.tables import format_duration, make_visible, plural

Say: TypeAlias = Callable[[str], None]
EVERY = 5.0  # seconds between plain lines
SOON = 2.0  # a shorter run needs no progress lines
DAY = 86_400.0
LONG = 10.0  # a call that takes longer is named


@asynccontextmanager
async def show_progress(progress: Progress, say: Say, quiet: bool = False) -> AsyncIterator[None]:
    """Show the progress of a run while it is played; `say` prints a message to the user."""
    showing = asyncio.create_task(choose_display(quiet)(progress, say))
    try:
        with watch_activity(partial(setattr, progress, "activity")):
            yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing
        print_notices(progress, say)


def choose_display(quiet: bool) -> Callable[[Progress, Say], Coroutine[Any, Any, None]]:
    """A bar in a terminal, a line that changes in a notebook, lines from time to time elsewhere."""
    if quiet:
        return show_nothing
    if sys.stderr.isatty():
        return show_bar
    return show_changing_line if "ipykernel" in sys.modules else show_lines


def print_notices(progress: Progress, say: Say) -> None:
    """Print each notice once."""
    while progress.notices:
        say(progress.notices.pop(0))


def describe_wait(progress: Progress) -> str:
    """The person who is asked, or the model with the slowest call, if it takes long."""
    for alias in progress.people:
        if progress.waiting.get(alias):
            return f"waiting for {alias} in the browser"
    if progress.batches:
        return describe_batches(list(progress.batches.values()))
    slowest = progress.slowest()
    return f"waiting {slowest[1]:.0f} s for {slowest[0]}" if slowest and slowest[1] > LONG else ""


def describe_batches(batches: Sequence[BatchProgress]) -> str:
    """The oldest batch, and how many more there are."""
    first = min(batches, key=lambda each: each.since)
    began = time.localtime(first.since)
    clock = "%H:%M" if time.time() - first.since < DAY else "%Y-%m-%d %H:%M"
    more = (
        f" and {plural(len(batches) - 1, 'more batch', 'more batches')}" if len(batches) > 1 else ""
    )
    return (
        f"waiting for batch {first.number} of {first.alias}: {first.done:,} of {first.total:,} "
        f"done, since {time.strftime(clock, began)}{more}"
    )


def describe_matches(progress: Progress) -> str:
    """The finished matches, of all that are planned. A worker does not know how many that are."""
    if not progress.planned:
        return f"{plural(progress.done, 'match', 'matches')} played"
    return f"{progress.done} of {plural(progress.planned, 'match', 'matches')}"


def describe_calls(progress: Progress) -> str:
    """The calls made so far, and how many are expected."""
    expected = progress.expected_calls
    if expected is None:
        return plural(progress.calls, "call")
    return f"{progress.calls:,} of ~{round(expected):,} calls"


def describe_time_left(progress: Progress) -> str:
    """The time left; empty if unknown, as it is for people, for batches, for plans that decide
    during the run what to play next, and while other work holds the run up."""
    if progress.people or progress.batches or progress.status_line or progress.activity:
        return ""
    left = progress.seconds_left()
    if left is None:
        return ""
    return f"~{format_duration(max(1, round(left)))} left"


async def show_nothing(progress: Progress, say: Say) -> None:
    pass


async def show_lines(progress: Progress, say: Say) -> None:
    """A line from time to time, for logs."""
    await asyncio.sleep(SOON)
    seen: object = None
    while True:
        print_notices(progress, say)
        now = (progress.done, progress.calls, progress.failed, describe_wait(progress))
        # a person may take minutes, and a batch hours: nothing is printed until something happens
        people = any(progress.waiting.get(alias) for alias in progress.people)
        if now != seen or not (people or progress.batches):
            say(describe_progress(progress))
        seen = now
        await asyncio.sleep(EVERY)


async def show_changing_line(progress: Progress, say: Say) -> None:
    """One line that is overwritten, for a notebook."""
    width = 0
    try:
        while True:
            while progress.notices:
                print(f"\r{'':<{width}}\r", end="", file=sys.stderr)
                say(progress.notices.pop(0))
            line = make_visible(describe_progress(progress))
            print(f"\r{line:<{width}}", end="", file=sys.stderr, flush=True)
            width = len(line)
            await asyncio.sleep(0.3)
    finally:
        line = make_visible(describe_progress(progress))
        print(f"\r{line:<{width}}", file=sys.stderr, flush=True)


def describe_progress(progress: Progress) -> str:
    """The progress of a run in one line."""
    rate = progress.calls / max(time.monotonic() - progress.began, 1e-9)
    parts = [
        describe_matches(progress),
        f"{progress.in_flight} being played",
        describe_calls(progress),
        f"{rate:.1f} calls/s",
        describe_time_left(progress),
        f"{progress.failed} failed" if progress.failed else "",
        describe_wait(progress),
        progress.activity or progress.status_line,
    ]
    return ", ".join(filter(None, parts))


def describe_columns(progress: Progress, width: int) -> dict[str, Any]:
    """The texts beside the bar. Other work, which holds the run up, takes the place of the rest."""
    failed = f"{progress.failed} failed" if progress.failed else ""
    if progress.activity:
        room = max(0, width - 40)
        return {
            "calls": "",
            "matches": "",
            "status": progress.activity[:room],
            "failed": failed,
            "left": "",
        }
    return {
        "calls": describe_calls(progress),
        "matches": describe_matches(progress),
        "status": progress.status_line[: max(0, width - 80)],
        "failed": ", ".join(filter(None, [failed, describe_wait(progress)])),
        "left": describe_time_left(progress),
    }


async def show_bar(progress: Progress, say: Say) -> None:
    """A bar that moves, for a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    def column(name: str, style: str = "none") -> TextColumn:
        return TextColumn(f"{{task.fields[{name}]}}", style, markup=False)

    await asyncio.sleep(0.3)
    columns = (
        BarColumn(20),
        column("calls"),
        column("matches"),
        column("status"),
        column("failed", "red"),
        TimeElapsedColumn(),
        column("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("", total=None, calls="", matches="", failed="", status="", left="")
        try:
            while True:
                while progress.notices:
                    notice = make_visible(progress.notices.pop(0))
                    bar.console.print(f"parley: {notice}", highlight=False, markup=False)
                fields = describe_columns(progress, bar.console.width)
                bar.update(line, total=progress.expected_calls, completed=progress.calls, **fields)
                await asyncio.sleep(0.2)
        finally:
            bar.update(line, total=progress.calls or None, completed=progress.calls)
