"""Time that passes only where somebody waits for it, so that no test depends on a quiet machine."""

import asyncio
import selectors
from types import SimpleNamespace

import pytest

from parley.providers import _endpoint_health, _transport
from parley.runs import rate_limits

LOOK = 0.002  # seconds of real time in which what is on its way through a socket arrives
STEP = 0.05  # seconds of a test's time that pass when nothing has arrived in one look


class Clock:
    """The time of a test: `now` in seconds, and `run` in place of `asyncio.run`."""

    def __init__(self):
        self.now = 1000.0
        self.callbacks = 0  # how often an event loop was given something to do

    def read(self):
        return self.now

    def run(self, coroutine):
        with asyncio.Runner(loop_factory=lambda: Loop(self)) as runner:
            return runner.run(coroutine)


class Loop(asyncio.SelectorEventLoop):
    """An event loop that goes by a clock of ours. Sockets are real."""

    def __init__(self, clock):
        super().__init__(Selector(clock))
        self._ours = clock

    def time(self):
        return self._ours.now

    def call_soon(self, *arguments, **options):
        self._ours.callbacks += 1
        return super().call_soon(*arguments, **options)


class Selector(selectors.DefaultSelector):
    """Waits for sockets as any other, and lets the clock go on where there is nothing to hear."""

    def __init__(self, clock):
        super().__init__()
        self._ours = clock

    def select(self, timeout=None):
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if not (found := super().select(LOOK)):
            self._ours.now += min(timeout, STEP) + 1e-6  # so that sums of it are no shorter
        return found


@pytest.fixture
def clock(monkeypatch):
    """A clock by which endpoints are waited for, too."""
    made = Clock()
    for module in (_endpoint_health, _transport, rate_limits):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made.read))
    return made
