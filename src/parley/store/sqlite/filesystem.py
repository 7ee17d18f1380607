"""Detects network file systems: SQLite's WAL needs shared memory, which they do not offer."""

from __future__ import annotations

import os
import re
from pathlib import Path

NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "lustre",
    "gluster",
    "beegfs",
    "gpfs",
    "fuse.sshfs",
    "fuse.s3",
    "davfs",
)


def filesystem_type(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system of a path; empty if unknown."""
    try:
        rows = [os.fsdecode(line).split(" ") for line in mounts.read_bytes().splitlines()]
    except OSError:
        return ""
    place = path.absolute().resolve()
    found = ("", "")
    for row in rows:
        if len(row) < 3:
            continue
        # the kernel escapes spaces
        point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), row[1])
        if place.is_relative_to(point) and len(point) >= len(found[0]):
            found = point, row[2]
    return found[1]


def is_network(path: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether a path is on a network file system."""
    return filesystem_type(path, mounts).startswith(NETWORK)
