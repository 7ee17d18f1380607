"""A kernel limit on the memory of a whole sandbox, if this process may set one."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

SYSTEM = Path("/sys/fs/cgroup")


class Group:
    """A control group with a memory limit; processes enter it before they become anything else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def wrap(self, command: list[str]) -> list[str]:
        """A command that runs inside the group."""
        return [
            "/bin/sh",
            "-c",
            'echo 0 > "$0" && exec "$@"',
            str(self._folder / "cgroup.procs"),
            *command,
        ]

    def kills(self) -> int:
        """The number of processes that the kernel has killed because the group was out of
        memory."""
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError, ValueError, KeyError):
                return int(
                    dict(line.split() for line in (self._folder / name).read_text().splitlines())[
                        "oom_kill"
                    ]
                )
        return 0

    def close(self) -> None:
        for _ in range(50):
            with suppress(FileNotFoundError):
                try:
                    self._folder.rmdir()
                except OSError:
                    time.sleep(0.02)
                    continue
            return


def make_limited_group(most: int, system: Path = SYSTEM, own: str | None = None) -> Group | None:
    """A new group limited to `most` bytes, with control groups v1 or v2; None if that is not
    allowed."""
    own = Path("/proc/self/cgroup").read_text() if own is None else own
    for line in own.splitlines():
        number, names, place = line.split(":", 2)
        if "memory" in names.split(","):
            group = make_group(system / "memory" / place.lstrip("/"), "memory.limit_in_bytes", most)
        elif number == "0" and not names:
            # a group with its own processes cannot have limited ones below it, so make a sibling
            here = system / place.lstrip("/")
            group = make_group(here if here == system else here.parent, "memory.max", most)
        else:
            continue
        if group is not None:
            return group
    return None


def make_group(above: Path, name: str, most: int) -> Group | None:
    for left in above.glob("parley-*"):  # by runs that were killed
        with suppress(OSError):
            if not Path(f"/proc/{left.name.split('-')[1]}").exists():
                left.rmdir()
    folder = above / f"parley-{os.getpid()}-{uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError:
        return None
    try:
        if not (folder / name).exists() or not os.access(folder / "cgroup.procs", os.W_OK):
            raise OSError("this cgroup hierarchy cannot limit memory")
        (folder / name).write_text(str(most))
        for swap, value in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", most)):
            with suppress(OSError):  # swap would only slow the machine down
                if (folder / swap).exists():
                    (folder / swap).write_text(str(value))
        # check that a process may enter it
        subprocess.run(Group(folder).wrap(["true"]), env={}, stderr=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.SubprocessError):
        with suppress(OSError):
            folder.rmdir()
        return None
    return Group(folder)


def host_kills() -> int | None:
    """How many processes of this machine were ended for want of memory since it started; None where
    that is not told."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None
