"""Become an ordinary user and run a module, on a machine where all that Python needs may lie in
root's closed home.

    python tests/hostile/user.py UID MODULE [ARGUMENTS]

A private mount namespace shows the closed folders empty but for the interpreter, the environment
and the project.
"""

import ctypes
import os
import sys
from pathlib import Path

NEW_MOUNTS, BIND, RECURSIVE, PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)
ROOT = Path(__file__).resolve().parents[2]


def done(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(what: str, place: Path, kind: str | None, flags: int, options: str | None) -> None:
    words = [None if each is None else each.encode() for each in (what, str(place), kind, options)]
    done(LIBC.mount(words[0], words[1], words[2], flags, words[3]))


def closed_above(place: Path) -> Path | None:
    """The outermost folder on the way to a place that others may not enter."""
    return next(
        (each for each in [*reversed(place.parents), place] if not each.stat().st_mode & 0o001),
        None,
    )


def open_up(places: list[Path]) -> None:
    done(LIBC.unshare(NEW_MOUNTS))
    mount("none", Path("/"), None, RECURSIVE | PRIVATE, None)
    held = [
        (place, closed, os.open(place, os.O_PATH))
        for place in places
        if (closed := closed_above(place)) is not None
    ]
    for closed in {each for _, each, _ in held}:
        mount("tmpfs", closed, "tmpfs", 0, "mode=0755")
    for place, _, descriptor in held:
        place.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", place, None, BIND | RECURSIVE, None)


if __name__ == "__main__":
    uid, module, *rest = sys.argv[1:]
    open_up(sorted({Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT}))
    os.chdir(os.environ["HOME"])
    os.setgroups([])
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
    os.execv(sys.executable, [sys.executable, "-m", module, *rest])
