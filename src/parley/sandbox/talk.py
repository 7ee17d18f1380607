"""Messages to and from confined processes: frames, each with a time limit, and reports on how a
process ended."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from parley.sandbox.inside.wire import LARGEST

CLOSE = 10.0  # seconds for a process, or a sandbox, to be gone
OWN_END = 2.0  # seconds for a watcher to see that a process has ended


class Gone(Exception):
    """A confined process has ended before it answered."""


class Late(Exception):
    """A confined process has not answered in time."""


@dataclass(frozen=True)
class End:
    """How a confined process ended, as its watcher saw it."""

    end: str
    cpu: float
    peak: int


class Frames:
    """Frames over a socket, each with a time limit."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.received = 0  # bytes

    def send(self, frame: bytes, ends: float) -> None:
        try:
            self.channel.settimeout(max(0.01, ends - time.monotonic()))
            self.channel.sendall(len(frame).to_bytes(4, "big") + frame)
        except TimeoutError:
            raise Late from None
        except OSError:
            raise Gone from None

    def receive(self, ends: float) -> bytes:
        size = int.from_bytes(self._exactly(4, ends), "big")
        if size > LARGEST:
            raise Gone  # it no longer follows the protocol
        self.received += size
        return self._exactly(size, ends)

    def _exactly(self, size: int, ends: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                self.channel.settimeout(max(0.01, ends - time.monotonic()))
                part = self.channel.recv(size - len(parts))
            except TimeoutError:
                raise Late from None
            except OSError:
                part = b""
            if not part:
                raise Gone
            parts += part
        return bytes(parts)


class Leash:
    """The connections of one trial. To pull the leash shuts them down, so that the trial ends soon
    and nobody waits for it."""

    def __init__(self) -> None:
        self._frames: list[Frames] = []
        self.pulled = False
        self._lock = threading.Lock()

    def attach(self, *several: Frames) -> None:
        with self._lock:
            self._frames = list(several)
            pulled = self.pulled
        if pulled:
            self.pull()

    def pull(self) -> None:
        with self._lock:
            self.pulled = True
            for frames in self._frames:
                with suppress(OSError):  # ended already
                    frames.channel.shutdown(socket.SHUT_RDWR)


class Talk(Frames):
    """Frames to and from one confined process, and the report on how it ended."""

    def __init__(
        self, channel: socket.socket, status: socket.socket, gone: Callable[[], None] | None
    ) -> None:
        super().__init__(channel)
        # waits until the sandbox is gone that held nothing but this process
        self._status, self._gone = status, gone
        self._end: End | None = None
        self._ending = threading.Lock()  # those who share a judge may all see that it is gone

    def finish(self, by_itself: bool = False) -> End:
        """End the process if it still runs, and return how it ended. Then nothing of it is left.

        With `by_itself`, it seems to have ended already, and its watcher gets a moment to report
        this.
        """
        with self._ending:
            if self._end is None:
                said = self._read_report(OWN_END) if by_itself else b""
                self.channel.close()
                if not said:
                    with suppress(OSError):
                        self._status.shutdown(socket.SHUT_WR)
                    said = self._read_report(CLOSE)
                self._status.close()
                if self._gone is not None:
                    self._gone()
                self._end = end_in(said)
            return self._end

    def _read_report(self, seconds: float) -> bytes:
        """What the watcher reports before it ends."""
        said = b""
        with suppress(OSError):
            self._status.settimeout(seconds)
            while part := self._status.recv(4096):
                said += part
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()


def end_in(said: bytes) -> End:
    """Parse a watcher's report on a process that has ended; anything else means that it is unknown
    how it ended."""
    try:
        found = End(**json.loads(said[: said.index(b"}") + 1]))
        if (
            not isinstance(found.end, str)
            or type(found.cpu) not in (int, float)
            or not math.isfinite(found.cpu)
            or type(found.peak) is not int
        ):
            raise ValueError("not a watcher's report")
        return found
    except (ValueError, TypeError, RecursionError, OverflowError):
        return End(
            f"unable: {said.decode('utf-8', 'replace').strip()[-500:] or 'no answer'}", 0.0, 0
        )
