"""The system call filter in the kernel's format. It refuses calls that no program needs, and
calls that were used to attack kernels before."""

from __future__ import annotations

import platform
import struct
from typing import Literal

Role = Literal["program", "judges", "shell"]

# By name: numbers on x86_64 and on aarch64 (None where it does not exist there).
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "personality": (135, 92),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "fanotify_init": (300, 262),
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "set_mempolicy": (238, 237),
    "landlock_create_ruleset": (444, 444),
    "vmsplice": (278, 75),
    "io_setup": (206, 0),
    "mlock": (149, 228),
    "mlock2": (325, 284),
    "mlockall": (151, 230),
    "process_mrelease": (448, 448),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "open_tree_attr": (467, 467),
    "remap_file_pages": (216, 234),
    "pidfd_open": (434, 434),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "cachestat": (451, 451),
    "fanotify_mark": (301, 263),
    "lsm_get_self_attr": (459, 459),
    "lsm_set_self_attr": (460, 460),
    "lsm_list_modules": (461, 461),
}
# What tools for users need and programs do not: locks and watches reach files of this machine,
# buffers are kernel memory.
NOT_IN_PROGRAMS: dict[str, tuple[int | None, int | None]] = {
    "flock": (73, 32), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "setsockopt": (54, 208), "sendmmsg": (307, 269),
}  # fmt: skip
# Commands of fcntl. One chooses the signal that tells of input; leases and watches reach files of
# this machine. Locks would, too: a program is told that it has them and has
# none, so that databases of its own work.
CHOOSE_SIGNAL, LEASE, NOTIFY, LOCKS = 10, 1024, 1026, (6, 7, 37, 38)
FCNTL = {"x86_64": 72, "aarch64": 25}
# What a process may do to another of the same user, and must not do to the first one of a view,
# which keeps it: limits, priority, processors. Where the number of the process stands in each call.
ABOUT_OTHERS: dict[str, tuple[int, int, int]] = {
    "prlimit64": (302, 261, 0),
    "setpriority": (141, 140, 1),
    "sched_setparam": (142, 118, 0),
    "sched_setscheduler": (144, 119, 0),
    "sched_setaffinity": (203, 122, 0),
    "sched_setattr": (314, 274, 0),
    "ioprio_set": (251, 30, 1),
}
KEEPER = 1
# Memory that processes share without a file: its pages stay when nearly all of it was unmapped, and
# nobody could count them. Tools for users may need it.
MMAP = {"x86_64": 9, "aarch64": 222}
SHARED_MEMORY = 0x21  # MAP_SHARED and MAP_ANONYMOUS
MACHINES = {
    "x86_64": (0xC000003E, 0, 56, 435, 16, 53),
    "aarch64": (0xC00000B7, 1, 220, 435, 29, 199),
}
SETTING_LIMITS = {"x86_64": (160, 302), "aarch64": (164, 261)}  # setrlimit and prlimit64
# the last call that was known when this was written: those that came later do not exist
NEWEST = 469
for also, name in (("AMD64", "x86_64"), ("arm64", "aarch64")):
    MACHINES[also], SETTING_LIMITS[also] = MACHINES[name], SETTING_LIMITS[name]
    FCNTL[also], MMAP[also] = FCNTL[name], MMAP[name]
NEW_NAMESPACES = 0x7E020000  # flags of clone that make namespaces
# sockets that join processes of one machine; those without addresses; where their kind stands
LOCAL, STREAM, KIND = 1, 1, 0xF
# the limit whose end the kernel brings about: one who lowers it seems to be killed by others
TIME = 0
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: words put into somebody's terminal

LOAD, MASK, EQUAL, ANY_BIT, FROM, RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
ALLOW, FORBIDDEN, MISSING, KILL = 0x7FFF0000, 0x50001, 0x50026, 0x80000000
PRETEND = 0x50000  # nothing is done, and the call seems to have worked
# where the parts of a call lie
NUMBER, MACHINE, FIRST, SECOND, THIRD, FOURTH = 0, 4, 16, 24, 32, 40
OTHER_MACHINE = 0x40000000  # from here on x86_64 has the calls of another one


def knows_machine() -> bool:
    """Whether Parley knows the system call numbers of this machine."""
    return platform.machine() in MACHINES


def make_filter(role: Role = "program", machine: str | None = None) -> bytes:
    """The filter for a machine; empty if its system call numbers are unknown."""
    if (machine := machine or platform.machine()) not in MACHINES:
        return b""
    audit, column, clone, clone3, ioctl, socketpair = MACHINES[machine]
    steps = [
        step(LOAD, MACHINE), step(EQUAL, audit, 1, 0), step(RETURN, KILL), step(LOAD, NUMBER),
        step(FROM, OTHER_MACHINE, 0, 1), step(RETURN, KILL), step(FROM, NEWEST + 1, 0, 1),
        step(RETURN, MISSING),
    ]  # fmt: skip
    for numbers in (REFUSED if role == "shell" else {**REFUSED, **NOT_IN_PROGRAMS}).values():
        if (number := numbers[column]) is not None:
            steps += [step(EQUAL, number, 0, 1), step(RETURN, FORBIDDEN)]
    orders = dict.fromkeys((CHOOSE_SIGNAL, LEASE, NOTIFY), FORBIDDEN) | dict.fromkeys(
        LOCKS, PRETEND
    )
    parts = [
        part
        for order, answer in orders.items()
        for part in (step(EQUAL, order, 0, 1), step(RETURN, answer))
    ]
    steps += [] if role == "shell" else only_for(FCNTL[machine], step(LOAD, SECOND), *parts)
    shared = [step(LOAD, FOURTH), step(MASK, SHARED_MEMORY), step(EQUAL, SHARED_MEMORY, 0, 1)]
    steps += [] if role == "shell" else only_for(MMAP[machine], *shared, step(RETURN, FORBIDDEN))
    for name, about in ABOUT_OTHERS.items() if role == "shell" else ():
        refused = [step(EQUAL, KEEPER, 0, 1), step(RETURN, FORBIDDEN)]
        if name == "setpriority":  # of all processes of a user
            refused += [step(LOAD, FIRST), step(EQUAL, 2, 0, 1), step(RETURN, FORBIDDEN)]
        steps += only_for(about[column], step(LOAD, (FIRST, SECOND)[about[2]]), *refused)
    # The C library falls back from clone3, whose flags no filter can read, to clone.
    steps += [step(EQUAL, clone3, 0, 1), step(RETURN, MISSING)]
    steps += only_for(
        clone, step(LOAD, FIRST), step(ANY_BIT, NEW_NAMESPACES, 0, 1), step(RETURN, FORBIDDEN)
    )
    # Others find an address by itself, and join programs that share a network.
    stream = [
        step(LOAD, SECOND),
        step(MASK, KIND),
        step(EQUAL, STREAM, 1, 0),
        step(RETURN, FORBIDDEN),
    ]
    local = [step(LOAD, FIRST), step(EQUAL, LOCAL, 1, 0), step(RETURN, FORBIDDEN)]
    steps += only_for(socketpair, *local, *([] if role == "shell" else stream))
    if role == "program":
        own, anybodys = SETTING_LIMITS[machine]
        steps += only_for(own, step(LOAD, FIRST), step(EQUAL, TIME, 0, 1), step(RETURN, FORBIDDEN))
        steps += only_for(
            anybodys,
            step(LOAD, THIRD), step(EQUAL, 0, 0, 3), step(LOAD, THIRD + 4), step(EQUAL, 0, 0, 1),
            step(RETURN, ALLOW),
            step(LOAD, FIRST), step(EQUAL, 0, 1, 0), step(RETURN, FORBIDDEN),
            step(LOAD, SECOND), step(EQUAL, TIME, 0, 1), step(RETURN, FORBIDDEN),
        )  # fmt: skip
    terminal = [
        part
        for word in TERMINAL_INPUT
        for part in (step(EQUAL, word, 0, 1), step(RETURN, FORBIDDEN))
    ]
    return b"".join([*steps, *only_for(ioctl, step(LOAD, SECOND), *terminal), step(RETURN, ALLOW)])


def only_for(number: int, *steps: bytes) -> list[bytes]:
    """Filter steps that check one call and allow it unless they refuse it."""
    return [step(EQUAL, number, 0, len(steps) + 1), *steps, step(RETURN, ALLOW)]


def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)
