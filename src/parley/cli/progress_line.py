"""Messages and the progress of downloads on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from parley.activity import watch_activity
from parley.runs.progress_display import EVERY, SOON
from parley.tables import make_visible


def say(text: str) -> None:
    """Print a message for the user on stderr."""
    print(f"parley: {make_visible(text)}", file=sys.stderr, flush=True)


@contextmanager
def show_downloads() -> Iterator[None]:
    """Show the progress of downloads."""
    with show_status() as tell, watch_activity(tell):
        yield


@contextmanager
def show_status() -> Iterator[Callable[[str], None]]:
    """Show progress: one line that is updated on a terminal, a new line now and then elsewhere."""
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
