"""Slow computations beside the pages: one at a time, once for each state of what they read."""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from traceback import format_exception
from typing import Generic, TypeVar

from parley.errors import ParleyError
from parley.providers._secrets import redact

T = TypeVar("T")


@dataclass(frozen=True)
class Computed(Generic[T]):
    """A value, or what went wrong, and the state that it was computed from."""

    stamp: str
    value: T | None
    fault: str
    seconds: float  # how long it took
    at: float  # when it was finished, on the monotonic clock


class Background(Generic[T]):
    """Computes values in a daemon thread, the most recently wanted one first, and keeps the last
    `most` of them. It may be used from any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._wanted: dict[str, tuple[str, Callable[[], T]]] = {}
        self._done: OrderedDict[str, Computed[T]] = OrderedDict()
        self._busy = "", ""  # the key and the state that are being computed
        self._thread: threading.Thread | None = None

    def last(self, key: str) -> Computed[T] | None:
        """What was computed last, also if it is out of date."""
        with self._changed:
            found = self._done.get(key)
            if found is not None:
                self._done.move_to_end(key)
            return found

    def start(self, key: str, stamp: str, compute: Callable[[], T]) -> None:
        """Compute a value soon, unless it is known for this state."""
        with self._changed:
            known = self._done.get(key)
            if (known is not None and known.stamp == stamp) or self._busy == (key, stamp):
                return
            self._wanted.pop(key, None)
            self._wanted[key] = stamp, compute
            while len(self._wanted) > self._most:
                del self._wanted[next(iter(self._wanted))]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="pages", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait_until_idle(self, key: str, seconds: float) -> None:
        """Wait a while until no value of this key is wanted or being computed."""
        ends = time.monotonic() + seconds
        with self._changed:
            while (key in self._wanted or key == self._busy[0]) and (
                rest := ends - time.monotonic()
            ) > 0:
                self._changed.wait(rest)

    def wait(self, key: str, stamp: str, seconds: float) -> Computed[T] | None:
        """Wait a while for the value of this state; returns what was computed last."""
        ends = time.monotonic() + seconds
        with self._changed:
            while (rest := ends - time.monotonic()) > 0:
                found = self._done.get(key)
                if found is not None and found.stamp == stamp:
                    break
                self._changed.wait(rest)
        return self.last(key)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._wanted:
                    self._changed.wait()
                key = next(reversed(self._wanted))
                stamp, compute = self._wanted.pop(key)
                self._busy = key, stamp
            began, value, fault = time.monotonic(), None, ""
            try:
                value = compute()
            except ParleyError as wrong:
                fault = redact(str(wrong))
            except Exception as wrong:  # an error of Parley or of a task; the thread goes on
                print(redact("".join(format_exception(wrong))), file=sys.stderr)
                fault = "The terminal that runs the server shows what went wrong."
            now = time.monotonic()
            with self._changed:
                self._busy = "", ""
                self._done[key] = Computed(stamp, value, fault, now - began, now)
                self._done.move_to_end(key)
                while len(self._done) > self._most:
                    self._done.popitem(last=False)
                self._changed.notify_all()
