"""Copy what a model has written into a new place, without links to what a check itself is or
reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from parley.sandbox.inside import confine

COPY = "/usr/bin/cp"
WORDS = 2000  # bytes that are kept of what went wrong
LEADING = ("/proc", "/dev", "/sys")
HARMLESS = {"/dev/null", "/dev/shm", "/dev/zero", "/dev/urandom"}
OURS = {"/etc/mtab"}  # links that every system has
# Python reads these before anything else: they say where its library is.
BESIDE_PROGRAMS = ("/pyvenv.cfg", "/usr/pyvenv.cfg")
MOST_LINKS = 40  # in one path: what the kernel follows
MOST_STEPS = 1_000_000  # through folders, to follow all links
NAMED, LONGEST_NAME = 20, 200  # links that are named, and bytes of their names


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
    steps, targets = iter(range(MOST_STEPS)), dict[str, str]()
    while waiting:
        folder = waiting.pop()
        before = os.stat(folder)
        for entry in list(os.scandir(folder)):
            if entry.is_symlink():
                if entry.path not in OURS and leads_out(entry.path, targets, steps):
                    os.unlink(entry.path)
                    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
                    removed.append(entry.path)
            elif entry.is_dir(follow_symlinks=False) and entry.path not in fixed:
                waiting.append(entry.path)
    return sorted(removed)


def list_links(removed: list[str]) -> str:
    """A line for each link that was removed, up to some."""
    names = [os.fsencode(each)[:LONGEST_NAME].decode("utf-8", "replace") for each in removed]
    lines = [f"removed before the check: {name}, a link to /proc, /dev or /sys\n" for name in names]
    more = len(lines) - NAMED
    return "".join([*lines[:NAMED], *([f"and {more} more\n"] if more > 0 else [])])


def leads_out(link: str, targets: dict[str, str], steps: Iterator[int]) -> bool:
    """Whether a link leads into /proc, /dev or /sys, by itself or by way of other links. `targets`
    keeps where each place leads, so that none is looked up twice; `steps` bounds the work."""
    here, rest, links = os.path.dirname(link), [os.path.basename(link)], 0
    while rest:
        if next(steps, None) is None:
            raise NotCopied("its symbolic links lead through too many folders")
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":  # of a folder that is no link
            here = os.path.dirname(here)
            continue
        place = f"{here.rstrip('/')}/{name}"
        if place in LEADING:
            whole = os.path.normpath(os.path.join(place, *reversed(rest)))
            return whole not in HARMLESS
        if (target := targets.get(place)) is None:
            target = targets[place] = read_target(place)
        if not target:
            here = place
            continue
        links += 1
        if links > MOST_LINKS:
            return False
        here = "/" if target.startswith("/") else here
        rest += reversed(target.split("/"))
    return False


def read_target(place: str) -> str:
    """What a link leads to; empty if it is none, or nothing is there."""
    try:
        return os.readlink(place)
    except OSError:
        return ""
