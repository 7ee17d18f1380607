"""Who plays a run: one process at a time; one that has died holds nothing."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

STALE = 60.0  # seconds without a heartbeat after which another machine's claim has lapsed


def process_id() -> str:
    """This process, so that it cannot be taken for a later one with the same number."""
    return f"{socket.gethostname()}:{os.getpid()}:{start_time_of(os.getpid())}"


def start_time_of(pid: int) -> str:
    """When a process began, as the kernel counts it, so that a number used again is told apart;
    empty if it has ended."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # one that was killed may wait for somebody to notice
    return "" if facts[0] in "ZX" else facts[19]


def is_alive(owner: str, beat: float) -> bool:
    """Whether the process that holds a run still runs; on another machine its heartbeat decides."""
    host, _, rest = owner.partition(":")
    pid, _, began = rest.partition(":")
    if host != socket.gethostname():
        return abs(time.time() - beat) < STALE
    if not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return start_time_of(int(pid)) == began
