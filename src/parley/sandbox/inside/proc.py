"""What the kernel tells of processes in /proc. Where a view hides /proc from everybody inside, its
keeper still reads it."""

from __future__ import annotations

import os
from typing import IO

from parley.sandbox.inside import confine

DETACH = 2
# the folder, where it is hidden; otherwise it is found by its name
kept: int | None = None


def hide() -> None:
    """Take /proc away from all processes that are started from now on, but keep it open."""
    global kept
    kept = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    confine.check_result(confine.LIBC.umount2(b"/proc", DETACH), "/proc")


def find(name: str) -> str:
    return f"/proc/{name}" if kept is None else name


def open_file(name: str, mode: str = "r") -> IO[str]:
    """Open a text below /proc. Bytes that are not UTF-8 are replaced."""
    return open(
        find(name), mode, errors="replace", opener=lambda path, how: os.open(path, how, dir_fd=kept)
    )


def list_names(name: str = "") -> list[str]:
    """The names in a folder below /proc."""
    folder = os.open(find(name) or ".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=kept)
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def read_link(name: str) -> str:
    return os.readlink(find(name), dir_fd=kept)
