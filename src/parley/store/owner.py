"""Which process plays a run: one at a time, and a process that has died owns nothing."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

STALE = 60.0  # seconds without a heartbeat, by the watcher's clock, after which a run is free


class Owner(NamedTuple):
    """The process that plays a run, as the run's file names it."""

    host: str
    pid: str
    began: str  # distinguishes it from a later process with the same id
    place: str  # machine and process namespace

    @classmethod
    def of(cls, text: str) -> Owner:
        """The owner that a run's file names; nobody for a text of another form."""
        parts = text.split(":", 3)
        return cls(*parts) if len(parts) == len(cls._fields) else cls("", "", "", "")

    @property
    def is_near(self) -> bool:
        """Whether its process id is valid here: the same machine and namespace."""
        return self.host == socket.gethostname() and self.place == this_place()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def process_id() -> str:
    """The id of this process in the form that a run's file has."""
    pid = os.getpid()
    return ":".join((socket.gethostname(), str(pid), start_time_of(pid), this_place()))


@cache
def this_place() -> str:
    """A short digest of this machine and process namespace: two containers may have the same host
    name."""
    machine = namespace = ""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text().strip()
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return blake2b(f"{machine}|{namespace}".encode(), digest_size=4).hexdigest()


def start_time_of(pid: int) -> str:
    """The start time of a process in kernel ticks, to detect a reused process id; empty if it has
    ended."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # a killed process may remain as a zombie
    return "" if facts[0] in "ZX" else facts[19]


def is_running(owner: Owner) -> bool:
    """Whether a process of this machine still runs."""
    if not owner.pid.isdigit():
        return False
    try:
        os.kill(int(owner.pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return start_time_of(int(owner.pid)) == owner.began


def seems_alive(owner: Owner, heartbeat: float) -> bool:
    """Whether a run seems to be played by its owner. For another machine this compares clocks, so
    it is only for showing a run, never for taking it over."""
    return is_running(owner) if owner.is_near else abs(time.time() - heartbeat) < STALE
