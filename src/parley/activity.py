"""Work that takes long outside of matches: downloads, texts that are embedded, servers that load.
Whoever does it reports; whoever shows progress watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

# gets a line several times a second, and an empty one at the end
Watcher = Callable[[str], None]
WATCHERS: list[Watcher] = []


@contextmanager
def watch_activity(watcher: Watcher) -> Iterator[None]:
    """Pass every line that is reported in this process to `watcher`."""
    WATCHERS.append(watcher)
    try:
        yield
    finally:
        WATCHERS.remove(watcher)


def report_activity(line: str) -> None:
    """Report what is going on; an empty line when it is over."""
    for watcher in tuple(WATCHERS):
        watcher(line)
