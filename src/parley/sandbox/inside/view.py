"""A temporary Linux system for a shell: with its own writable folders and its own users, and
with programs that nobody inside can replace."""

from __future__ import annotations

import ctypes
import os
import resource
from contextlib import suppress
from typing import Any

from parley.sandbox.inside import confine

BIND, REMOUNT, DETACH = 4096, 32, 2
NAME, BOUNDING_DROP = 15, 24
IDS = 1 << 16  # users of a view
# What root of the view may do there: change owners, read and write what is others', become others,
# end their processes.
KEPT = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "FSETID": 4,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
}
# A right that allows nothing here. Scripts of the task have it and the model's processes do not,
# and the kernel lets no process look into one that has more rights.
APART = 35  # WAKE_ALARM
LAST_RIGHT = 40
FOLDERS = {
    "/etc": 0o755, "/home": 0o755, "/mnt": 0o755, "/opt": 0o755, "/root": 0o700, "/run": 0o755,
    "/srv": 0o755, "/tmp": 0o1777,
    "/var": 0o755, "/var/cache": 0o755, "/var/lib": 0o755, "/var/log": 0o755, "/var/mail": 0o775,
    "/var/spool": 0o755,
    "/var/tmp": 0o1777, "/usr/local/bin": 0o755, "/usr/local/etc": 0o755, "/usr/local/lib": 0o755,
    "/usr/local/sbin": 0o755,
    "/usr/local/share": 0o755, "/usr/local/src": 0o755,
}  # fmt: skip
# Programs load from here before they do what they are asked to: whoever writes here decides what a
# check finds.
EMPTY_HOME = "/etc/empty"
SEALED_FILES = ("/etc/ld.so.cache", "/etc/ld.so.preload")
SEALED_FOLDERS = (
    "/etc/alternatives", "/etc/pam.d", "/etc/perl", "/etc/security", "/etc/ssl",
    "/usr/local/include", "/usr/local/lib", "/usr/local/share", EMPTY_HOME,
)  # fmt: skip


def made(settings: dict[str, Any]) -> None:
    """Turn the file system that bubblewrap has set up into the view, then become root of the
    view, but of nothing else."""
    owner, disk = settings["owner"], settings["limits"]["disk"]
    for place in settings["hidden"]:
        hidden(place)
    own_programs(settings)
    size = b"size=%d,nr_inodes=%d,mode=755" % (disk, max(4096, disk >> 12))
    confine.done(
        confine.mount(b"tmpfs", b"/", REMOUNT | confine.NO_SUID | confine.NO_DEV, size), "/"
    )
    confine.done(
        confine.mount(b"tmpfs", b"/usr/local", confine.NO_SUID | confine.NO_DEV, size), "/usr/local"
    )
    own = {settings["home"]: FOLDERS.get(settings["home"], 0o755)}
    for place, mode in {"/": 0o755, "/usr/local": 0o755, **FOLDERS, **own}.items():
        os.makedirs(place, exist_ok=True)
        given(place, mode, owner)
    for place, mode, text in (*((place, 0o644, "") for place in SEALED_FILES), *settings["files"]):
        laid(place, mode, bytes.fromhex(text), owner)
    for place in (*SEALED_FOLDERS, *settings["sealed"]):
        os.makedirs(place, exist_ok=True)
        given(place, 0o755, owner)
    for place, target in settings["links"]:
        os.symlink(target, place)
        os.lchown(place, owner, owner)
    bound("/etc", 0)  # a folder on which something is mounted can be neither renamed nor removed
    for place in (*SEALED_FILES, *SEALED_FOLDERS, *settings["sealed"]):
        bound(place, confine.READ_ONLY)
    if settings["owner"]:
        own_users(settings["owner"], settings["limits"]["processes"])
    renamed(b"init")
    confine.control(confine.DUMPABLE, 0, "dumpable")  # nobody inside reads or writes our memory


FOLDERS_OF_USR = ("etc", "lib32", "lib64", "libexec", "libx32")


def own_programs(settings: dict[str, Any]) -> None:
    """Mount an overlay over /usr. Files may be added beside its folders, but the folders
    themselves stay as they are, and locks on files there are invisible outside."""
    layer = "/.layer"
    os.mkdir(layer)
    disk = settings["limits"]["disk"]
    size = b"size=%d,nr_inodes=%d,mode=755" % (disk, max(4096, disk >> 12))
    confine.done(
        confine.mount(b"tmpfs", layer.encode(), confine.NO_SUID | confine.NO_DEV, size), layer
    )
    for name in ("upper", "work"):
        os.mkdir(f"{layer}/{name}")
    given(f"{layer}/upper", 0o755, settings["owner"])
    for name in FOLDERS_OF_USR:  # where programs look for what they load
        if not os.path.lexists(f"/usr/{name}"):
            os.mkdir(f"{layer}/upper/{name}", 0o755)
    options = f"lowerdir=/usr,upperdir={layer}/upper,workdir={layer}/work,userxattr".encode()
    flags = confine.NO_SUID | confine.NO_DEV
    confine.done(confine.mount(b"overlay", b"/usr", flags, options), "a layer over /usr")
    confine.done(confine.LIBC.umount2(layer.encode(), DETACH), layer)
    os.rmdir(layer)
    folders = [each.name for each in os.scandir("/usr") if each.is_dir(follow_symlinks=False)]
    for name in folders:
        if name != "local":
            bound(f"/usr/{name}", confine.READ_ONLY)
    for place, target in settings["merged"]:
        confine.done(confine.LIBC.mount(target.encode(), place.encode(), None, BIND, None), place)
        flags = REMOUNT | BIND | confine.READ_ONLY | confine.NO_SUID | confine.NO_DEV
        confine.done(confine.LIBC.mount(place.encode(), place.encode(), None, flags, None), place)


def renamed(name: bytes) -> None:
    """Change our process name, because our command line reveals where this machine keeps its
    programs."""
    with open("/proc/self/stat") as file:
        begins, ends = map(int, file.read().rpartition(")")[2].split()[45:47])
    ctypes.memmove(begins, name.ljust(ends - begins, b"\0"), ends - begins)
    confine.done(confine.LIBC.prctl(NAME, name, 0, 0, 0), "name")


def hidden(place: str) -> None:
    """Hide a folder of our own interpreter; everything needed from it is already loaded."""
    confine.done(confine.LIBC.umount2(place.encode(), DETACH), place)
    with suppress(OSError):
        os.removedirs(place)


def given(place: str, mode: int, owner: int) -> None:
    os.chown(place, owner, owner)
    os.chmod(place, mode)


def laid(place: str, mode: int, text: bytes, owner: int) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(text)
    given(os.path.dirname(place), os.stat(os.path.dirname(place)).st_mode & 0o7777, owner)
    given(place, mode, owner)


def bound(place: str, flags: int) -> None:
    """Mount a folder on itself, with its own flags."""
    name = place.encode()
    confine.done(confine.LIBC.mount(name, name, None, BIND, None), place)
    flags |= REMOUNT | BIND | confine.NO_SUID | confine.NO_DEV
    confine.done(confine.LIBC.mount(name, name, None, flags, None), place)


def own_users(base: int, processes: int) -> None:
    """Create a user namespace with a range of users that do not exist on this machine.

    Its creator is a user with a limited number of processes, so that the limit holds for all users
    inside together.
    """
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    entered, waiting = os.pipe()
    mapped = os.fork()
    if mapped == 0:
        os.close(waiting)
        os.read(entered, 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/1/{name}", "w") as file:
                file.write(f"0 {base} {IDS}")
        os._exit(0)
    os.setgroups([])
    os.setresgid(base, base, base)
    os.setresuid(base, base, 0)
    confine.done(confine.LIBC.unshare(confine.NEW_USER), "a user namespace")
    os.close(waiting)
    if os.waitpid(mapped, 0)[1]:
        raise confine.Unable("users: their numbers could not be written")
    os.close(entered)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def confined(limits: dict[str, Any], program: bytes, trusted: bool) -> None:
    """Restrict the current process before it becomes a shell or a script: root's rights over the
    view's own files and users, and nothing else."""
    confine.limited(limits)
    confine.bounded("CPU", limits["cpu"])
    rights = {*KEPT.values(), *([APART] if trusted else [])}
    for right in range(LAST_RIGHT + 1):
        if right not in rights:
            confine.done(confine.LIBC.prctl(BOUNDING_DROP, right, 0, 0, 0), f"right {right}")
    low, high = (sum(1 << right % 32 for right in rights if right // 32 == n) for n in (0, 1))
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    confine.done(
        confine.LIBC.capset(header, (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)), "rights"
    )
    confine.control(confine.NO_NEW_RIGHTS, 1, "no new rights")
    confine.filtered(program)
