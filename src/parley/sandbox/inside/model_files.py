"""Copy what a model has written into a new place."""

from __future__ import annotations

import os
from collections.abc import Callable

from parley.sandbox.inside import confine

COPY = "/usr/bin/cp"
WORDS = 2000  # bytes that are kept of what went wrong
# Python reads these before anything else: they say where its library is.
BESIDE_PROGRAMS = ("/pyvenv.cfg", "/usr/pyvenv.cfg")


class NotCopied(Exception):
    """What a model has written cannot be copied."""


def copy(
    source: int, names: tuple[str, ...], place: str, confine_process: Callable[[], None]
) -> None:
    """Copy folders below another one, with owners, modes, times and hard links, but nothing that
    is mounted there."""
    said = os.memfd_create("errors")
    pid = os.fork()
    if pid == 0:
        try:
            os.set_inheritable(source, True)
            os.dup2(said, 2)
            confine_process()
            folders = [f"/proc/self/fd/{source}/{name}" for name in names]
            os.execve(COPY, [COPY, "-a", "-x", *folders, place], {"LC_ALL": "C"})
        except BaseException as wrong:
            os.write(said, f"{COPY}: {wrong}\n".encode())
        os._exit(127)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    words = os.pread(said, WORDS, 0).decode("utf-8", "replace").strip()
    os.close(said)
    if status == 1:
        raise NotCopied(words)
    if status:
        raise confine.Unable(f"copying what the model wrote: {words or f'exit {status}'}")


def remove_settings() -> None:
    """Remove files beside the programs of this machine that change what they do."""
    for place in BESIDE_PROGRAMS:
        if os.path.lexists(place) and not os.path.isdir(place):
            os.unlink(place)
