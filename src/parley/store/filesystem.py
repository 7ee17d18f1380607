"""Where a file lies: SQLite's WAL needs shared memory, which network file systems do not give."""

from __future__ import annotations

from pathlib import Path

NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gluster", "beegfs", "gpfs", "fuse.sshfs", "fuse.s3", "davfs")


def kind_of(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system that holds a path; empty where the machine does not tell."""
    try:
        rows = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return ""
    place = path.absolute().resolve()
    found = ("", "")
    for row in rows:
        point = row[1].encode().decode("unicode_escape")
        if len(row) > 2 and place.is_relative_to(point) and len(point) >= len(found[0]):
            found = point, row[2]
    return found[1]


def is_network(path: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    return kind_of(path, mounts).startswith(NETWORK)
