"""Who plays a run: one process at a time; one that has died holds nothing."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

STALE = 60.0  # seconds without a heartbeat after which another machine's claim has lapsed


def me() -> str:
    """This process, so that it cannot be taken for a later one with the same number."""
    return f"{socket.gethostname()}:{os.getpid()}:{started(os.getpid())}"


def started(pid: int) -> str:
    """When a process began, as the kernel counts it: a number that is reused is told apart."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def lives(owner: str, beat: float) -> bool:
    """Whether the process that holds a run still runs; on another machine its heartbeat decides."""
    host, pid, began = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return time.time() - beat < STALE
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return started(int(pid)) == began
