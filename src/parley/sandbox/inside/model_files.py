"""Copy what a model has written into a new place, without links to what a check itself is or
reads."""

from __future__ import annotations

import os
from collections.abc import Callable

from parley.sandbox.inside import confine

COPY = "/usr/bin/cp"
WORDS = 2000  # bytes that are kept of what went wrong
LEADING = ("/proc", "/dev", "/sys")
HARMLESS = {"/dev/null", "/dev/shm", "/dev/zero", "/dev/urandom"}
OURS = {"/etc/mtab"}  # links that every system has
# Python reads these before anything else: they say where its library is.
BESIDE_PROGRAMS = ("/pyvenv.cfg", "/usr/pyvenv.cfg")
MOST_LINKS = 40  # in one path: what the kernel follows


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


def remove_links(fixed: set[str]) -> list[str]:
    """Remove links that lead to what a check itself is or reads, and files beside the programs of
    this machine that change what they do. `fixed` are folders that no model can write."""
    for place in BESIDE_PROGRAMS:
        if os.path.lexists(place) and not os.path.isdir(place):
            os.unlink(place)
    removed, fixed = [], {*fixed, "/proc", "/dev"}
    waiting = ["/", "/dev/shm"]
    while waiting:
        for entry in list(os.scandir(waiting.pop())):
            if entry.is_symlink():
                if entry.path not in OURS and leads_out(entry.path):
                    os.unlink(entry.path)
                    removed.append(entry.path)
            elif entry.is_dir(follow_symlinks=False) and entry.path not in fixed:
                waiting.append(entry.path)
    return sorted(removed)


def leads_out(link: str) -> bool:
    """Whether a link leads into /proc, /dev or /sys, by itself or by way of other links."""
    here, rest, links = os.path.dirname(link), [os.path.basename(link)], 0
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        place = os.path.dirname(here) if name == ".." else os.path.join(here, name)
        if place in LEADING:
            whole = os.path.normpath(os.path.join(place, *reversed(rest)))
            return whole not in HARMLESS
        try:
            target = os.readlink(place)
        except OSError:  # no link, or nothing
            here = place
            continue
        links += 1
        if links > MOST_LINKS:
            return False
        here = "/" if target.startswith("/") else here
        rest += reversed(target.split("/"))
    return False
