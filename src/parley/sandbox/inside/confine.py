"""Confine the current process before it touches anything written by a model: resource limits, a
system call filter, no capabilities."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
HOLDING = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter to itself while it forks
NEW_USER, NEW_PID, NEW_MOUNT = 0x10000000, 0x20000000, 0x00020000
PROGRAM_SPACES = NEW_USER | NEW_PID | NEW_MOUNT  # namespaces of a program
VIEW_SPACES = NEW_PID | NEW_MOUNT  # of a view, which makes its users itself
THREAD_PLACE, THREAD_SET, THREAD_CLEAR = 40, 0x01000000, 0x00200000
# its number, and whether its last two arguments are swapped
CLONE = {"x86_64": (56, False), "aarch64": (220, True)}
READ_ONLY, NO_SUID, NO_DEV, NO_EXEC = 1, 2, 4, 8
DIE_WITH_PARENT, DUMPABLE, NO_NEW_RIGHTS, FILTER, SUBREAPER = 1, 4, 38, 22, 36
LIMITS = {"AS": "space", "FSIZE": "file", "NOFILE": "files", "NPROC": "processes"}


class Filter(ctypes.Structure):
    """A seccomp filter program in the kernel's format."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


class Unable(Exception):
    """A step of the confinement failed, so nothing may run."""


def check_result(result: int, what: str) -> None:
    if result:
        raise Unable(f"{what}: {os.strerror(ctypes.get_errno())}")


def control(option: int, value: int, what: str) -> None:
    check_result(LIBC.prctl(option, value, 0, 0, 0), what)


def mount(kind: bytes, place: bytes, flags: int, options: bytes | None) -> int:
    return int(LIBC.mount(kind, place, kind, flags, options))


def fork(spaces: int = 0) -> int:
    """Fork. With flags of namespaces, the child is the first process in namespaces of its own."""
    if not spaces:
        return os.fork()
    # What fork() of the C library does, with more flags: the child's thread number is put where the
    # library keeps it.
    place = ctypes.c_void_p()
    kept = LIBC.prctl(THREAD_PLACE, ctypes.byref(place), 0, 0, 0) == 0
    flags = spaces | signal.SIGCHLD | (THREAD_SET | THREAD_CLEAR if kept else 0)
    call, swapped = CLONE.get(os.uname().machine, (0, False))
    if not call:
        raise Unable(f"new namespaces: a machine {os.uname().machine} is not known")
    rest = (0, place) if swapped else (place, 0)
    # As os.fork() does: the interpreter's locks are taken before and given back on both sides.
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(HOLDING.syscall(call, ctypes.c_ulong(flags), None, None, *rest))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return pid
    wrong = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise Unable(f"new namespaces: {os.strerror(wrong)}")
    return pid


def map_own_ids(uid: int, gid: int) -> None:
    """Map our user and group ID into a new user namespace. No other ID exists there."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(descriptor, text.encode())
        os.close(descriptor)


def mount_own_files(limits: dict[str, Any]) -> None:
    """Mount a private, empty /tmp and /dev/shm."""
    size = b"size=%d,nr_inodes=4096,mode=1777" % limits["disk"]
    check_result(mount(b"tmpfs", b"/tmp", NO_SUID | NO_DEV, size), "/tmp")
    check_result(
        mount(b"tmpfs", b"/dev/shm", NO_SUID | NO_DEV | NO_EXEC, b"size=1m,nr_inodes=64,mode=1777"),
        "/dev/shm",
    )
    # An empty /proc: a real one would tell of the machine, and of nothing that a program needs.
    check_result(
        mount(b"tmpfs", b"/proc", READ_ONLY | NO_SUID | NO_DEV | NO_EXEC, b"size=4k"), "/proc"
    )


def set_limits(limits: dict[str, Any]) -> None:
    """Set resource limits for this process and each of its children. The limit on CPU time is
    set later, when it starts to count."""
    set_limit("CORE", 0)
    for name, ours in LIMITS.items():
        set_limit(name, limits[ours])


def set_limit(name: str, value: int) -> None:
    which = getattr(resource, f"RLIMIT_{name}")
    least, most = resource.getrlimit(which)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    if (least, most) != (value, value):  # one that is bounded already may not be allowed to ask
        resource.setrlimit(which, (value, value))


def drop_rights(program: bytes) -> None:
    """Drop all capabilities, forbid new ones, and filter system calls."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    check_result(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capabilities")
    control(NO_NEW_RIGHTS, 1, "no new rights")
    install_filter(program)


def install_filter(program: bytes) -> None:
    """Install a system call filter."""
    if not program:
        return  # this machine's system calls are not known: whoever starts us has said so
    held = ctypes.create_string_buffer(program, len(program))
    whole = Filter(len(program) // 8, ctypes.addressof(held))
    check_result(LIBC.prctl(FILTER, 2, ctypes.byref(whole), 0, 0), "filter on system calls")
