"""Hold processes as a debugger does: only SIGKILL can resume one. The kernel wakes a process that
is merely stopped when its process group is orphaned."""

from __future__ import annotations

import ctypes
import os

from parley.sandbox.inside import confine

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17


def trace(request: int, thread: int) -> bool:
    """Whether ptrace succeeded; it fails if the thread has ended or debugging is forbidden."""
    nothing = ctypes.c_void_p()
    return int(confine.LIBC.ptrace(ctypes.c_long(request), thread, nothing, nothing)) == 0


def hold_processes(pids: set[int]) -> list[int]:
    """Hold all threads of these processes; returns those that were not held before."""
    held = []
    for pid in pids:
        try:
            threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        except OSError:
            continue
        held += [thread for thread in threads if trace(SEIZE, thread)]
    for thread in held:
        trace(INTERRUPT, thread)  # for one that waits in the kernel and cannot be stopped yet
    return held


def release(thread: int) -> None:
    trace(DETACH, thread)
