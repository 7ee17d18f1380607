"""The files of this machine that a shell's view contains: settings that its programs need, and
nothing else."""

from __future__ import annotations

import os
from glob import glob
from pathlib import Path

# Configuration that comes with a system and says nothing about a machine; what not everybody may
# read is left out.
SYSTEM = (
    "adduser.conf", "bash.bashrc", "debian_version", "default/useradd", "deluser.conf", "host.conf",
    "inputrc", "issue", "ld.so.cache", "ld.so.conf", "locale.alias", "login.defs", "magic",
    "mime.types", "nsswitch.conf", "os-release", "pam.conf", "pam.d/*", "profile", "protocols",
    "redhat-release", "rpc", "security/*.conf", "services", "shells", "skel/.*", "xattr.conf",
)  # fmt: skip
LARGEST = 1 << 18
NOBODY = "/usr/sbin/nologin"
USERS = {
    "root": (0, "/root", "/bin/bash"), "daemon": (1, "/usr/sbin", NOBODY),
    "bin": (2, "/bin", NOBODY), "sys": (3, "/dev", NOBODY),
    "mail": (8, "/var/mail", NOBODY), "www-data": (33, "/var/www", NOBODY),
    "nobody": (65534, "/nonexistent", NOBODY),
}  # fmt: skip
GROUPS = {"root": 0, "daemon": 1, "bin": 2, "sys": 3, "adm": 4, "tty": 5, "disk": 6, "mail": 8,
          "sudo": 27, "www-data": 33,
          "shadow": 42, "staff": 50, "users": 100, "nogroup": 65534}  # fmt: skip


def files() -> list[tuple[str, int, str]]:
    """Path, mode and contents (in hexadecimal) of every file that a new view contains."""
    own = {
        "passwd": "".join(f"{name}:x:{uid}:{gid(name)}:{name}:{home}:{shell}\n" for name, (uid,
            home, shell) in USERS.items()),
        "group": "".join(f"{name}:x:{number}:\n" for name, number in GROUPS.items()),
        "shadow": "".join(f"{name}:*:20000:0:99999:7:::\n" for name in USERS),
        "gshadow": "".join(f"{name}:*::\n" for name in GROUPS),
        "hostname": "sandbox\n", "hosts": "127.0.0.1 localhost sandbox\n", "timezone": "Etc/UTC\n",
        "fstab": "", "motd": "",
    }  # fmt: skip
    found = [
        (f"/etc/{name}", 0o640 if "shadow" in name else 0o644, text.encode().hex())
        for name, text in own.items()
    ]
    places = (Path(place) for pattern in SYSTEM for place in sorted(glob(f"/etc/{pattern}")))
    public = (
        each
        for each in places
        if each.is_file() and each.stat().st_mode & 0o004 and each.stat().st_size <= LARGEST
    )
    return [*found, *((str(each), 0o644, each.read_bytes().hex()) for each in public)]


def gid(name: str) -> int:
    return GROUPS.get(name, GROUPS["nogroup"])


def links() -> list[tuple[str, str]]:
    """The symbolic links of a view: the program behind each common name, and links that every
    system has."""
    places = (
        [entry for entry in os.scandir("/etc/alternatives") if entry.is_symlink()]
        if os.path.isdir("/etc/alternatives")
        else []
    )
    found = [(entry.path, os.readlink(entry.path)) for entry in places]
    return [
        *found,
        ("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC"),
        ("/etc/mtab", "/proc/self/mounts"),
        ("/var/run", "/run"),
    ]


def startup_folders() -> list[str]:
    """Folders from which this machine's Python installations load code at startup, wherever the
    system keeps them."""
    targets = [os.path.realpath(each) for each in glob("/usr/lib/python3*/sitecustomize.py")]
    return sorted({os.path.dirname(each) for each in targets if each.startswith("/etc/")})
