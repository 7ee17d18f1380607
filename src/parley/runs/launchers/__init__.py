"""Launchers start `parley worker` processes, here or on other machines, and start them again after
one was killed. They never decide whether a run is over: the store says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

MOST_RESTARTS = 10  # of a worker that was killed by a signal
DRAIN = 20.0  # seconds that workers get to finish their calls
# Python in front of a worker, which ends with the process that started it; the first word is the
# number of that process, which may be gone already. `prctl(1, 15)` is PR_SET_PDEATHSIG with
# SIGTERM.
DIE_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15, 0, 0, 0); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)


@dataclass(frozen=True)
class LauncherState:
    """What a launcher knows about its workers. Those that ended without an error are not in it."""

    up: int
    waiting: int  # for a free place, or for another one after a machine failed
    failed: tuple[str, ...] = ()  # for each worker that ended with an error: its last lines


class Launcher(Protocol):
    """Places workers and ends them."""

    def start(self, workers: int, words: Sequence[str], secrets: Mapping[str, str]) -> None:
        """Start `parley worker` with these words. Secrets are environment variables of the workers;
        no list of processes, job script or record of a cluster may show them."""

    def poll(self) -> LauncherState: ...

    def stop(self, patience: float = DRAIN) -> None:
        """End the workers that are left, and delete what was written for them. `patience`: seconds
        in which they may finish their calls; 0: they leave at once."""
