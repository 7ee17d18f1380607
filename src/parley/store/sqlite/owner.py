"""Who plays a run: one process at a time; one that has died holds nothing."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

STALE = 60.0  # seconds of the watcher's own clock without a beat after which a claim has lapsed


class Owner(NamedTuple):
    """A process that plays a run: the form in which a run's file names it."""

    host: str
    pid: str
    began: str  # so that it is not taken for a later process with the same number
    place: str = ""  # machine and process namespace; older files do not say it

    @classmethod
    def of(cls, text: str) -> Owner:
        return cls(*[*text.split(":", 3), "", ""][:4]) if ":" in text else cls(text, "", "")

    @property
    def is_near(self) -> bool:
        """Whether its number means something here: the same machine, the same namespace."""
        return self.host == socket.gethostname() and self.place in ("", this_place())

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def process_id() -> str:
    """This process, as a run's file names it."""
    pid = os.getpid()
    return ":".join((socket.gethostname(), str(pid), start_time_of(pid), this_place()))


@cache
def this_place() -> str:
    """A few letters that stand for this machine and process namespace: two containers may have
    one host name."""
    machine = namespace = ""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text().strip()
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return blake2b(f"{machine}|{namespace}".encode(), digest_size=4).hexdigest()


def start_time_of(pid: int) -> str:
    """When a process began, as the kernel counts it, so that a number used again is told apart;
    empty if it has ended."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # one that was killed may wait for somebody to notice
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


def seems_alive(owner: Owner, beat: float) -> bool:
    """Whether a run seems to be played by its owner. On another machine only the clock can say
    that at once: it is for showing a run, never for taking it over."""
    return is_running(owner) if owner.is_near else abs(time.time() - beat) < STALE
