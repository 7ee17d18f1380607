"""Measure memory and CPU time of process families, as the kernel reports them."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from parley.sandbox.inside import proc

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
# seconds on the processor, and by the clock, for one look at what processes share
PATIENCE = (0.1, 1.0)
TRIES = 3  # to find a thread that lives
MANY = 5  # processes that can hold much in sockets
SOCKET_BUFFER = 212_992  # bytes: what Linux lets a socket hold unless it is asked for more


@dataclass(frozen=True)
class ProcessFacts:
    """A snapshot of a process."""

    parent: int
    headless: bool  # its first thread has ended, and others go on: it shows no memory then
    own: int  # ticks on the processor
    collected: int  # and those of its children that have ended and were waited for


@dataclass
class Times:
    """CPU time of a process family. For a process that ended without being waited for, the last
    value seen counts."""

    last: dict[int, int] = field(default_factory=dict)
    gone: int = 0

    def seconds(self, family: dict[int, ProcessFacts]) -> float:
        """The CPU time of all processes so far."""
        self.gone += sum(own for pid, own in self.last.items() if pid not in family)
        self.last = {pid: each.own for pid, each in family.items()}
        collected = sum(each.collected for each in family.values())
        return (sum(self.last.values()) + max(self.gone, collected)) / TICKS


def processes() -> dict[int, ProcessFacts]:
    """A snapshot of all processes that are visible here."""
    found: dict[int, ProcessFacts] = {}
    for name in proc.list_names():
        if name.isdecimal():
            try:
                with proc.open_file(f"{name}/stat") as file:
                    state, *rest = file.read().rpartition(")")[2].split()
                parent, own, collected = (
                    int(rest[0]),
                    int(rest[10]) + int(rest[11]),
                    int(rest[12]) + int(rest[13]),
                )
                found[int(name)] = ProcessFacts(
                    parent, state == "Z" and int(rest[16]) > 1, own, collected
                )
            except (OSError, IndexError, ValueError):
                continue
    return found


def all_below(root: int, here: dict[int, ProcessFacts]) -> dict[int, ProcessFacts]:
    """The descendants of a process."""
    below: dict[int, list[int]] = {}
    for pid, each in here.items():
        below.setdefault(each.parent, []).append(pid)
    found: dict[int, ProcessFacts] = {}
    waiting = [root]
    while waiting:
        new = [pid for pid in below.get(waiting.pop(), ()) if pid not in found]
        found |= {pid: here[pid] for pid in new}
        waiting += new
    return found


def memory_of(family: dict[int, ProcessFacts], enough: int, ours: bool = False) -> int:
    """Bytes of memory that processes hold. Shared memory is counted once; this takes a while, so it
    is done only where it matters. `ours` are processes that we have made hide from others.

    If counting takes too long, shared memory is counted once for each process that holds it, so
    that no other process has to wait.
    """
    rough = {
        pid: thread_memory(pid) if each.headless else read_resident(pid)
        for pid, each in family.items()
    }
    buffers = socket_buffers(family)
    # What is shared can be held without being resident, but not without being mapped.
    shared = shared_mappings(family) if not ours and sum(map(read_mapped, family)) > enough else 0
    total = sum(rough.values()) + buffers + shared
    if total <= enough:
        return total
    until = [
        clock() + seconds
        for clock, seconds in zip((time.process_time, time.monotonic), PATIENCE, strict=True)
    ]
    exact = buffers + shared
    for pid, each in family.items():
        if time.process_time() > until[0] or time.monotonic() > until[1]:
            return total
        exact += rough[pid] if each.headless else own_memory(pid, with_shared=not shared)
    return exact


def read_mapped(pid: int) -> int:
    """Bytes of a process's address space."""
    return statm(pid, 0)


def shared_mappings(family: Iterable[int]) -> int:
    """Bytes of anonymous shared memory that processes have mapped, each piece once.

    Its pages remain when a process unmaps them, and then belong to no process's resident size. All
    mappings of a process that hides them are counted.
    """
    sizes: dict[str, int] = {}
    for pid in family:
        try:
            with proc.open_file(f"{pid}/maps") as file:
                lines = file.readlines()
        except PermissionError:
            sizes[f"of {pid}"] = read_mapped(pid)
            continue
        except OSError:  # it has ended
            continue
        for line in lines:
            place, rights, offset, _, inode, *name = line.split(maxsplit=5)
            if rights[3] == "s" and name and name[0].startswith(("/dev/zero", "/memfd:")):
                start, end = (int(each, 16) for each in place.split("-"))
                sizes[inode] = max(sizes.get(inode, 0), int(offset, 16) + end - start)
    return sum(sizes.values())


def socket_buffers(family: Collection[int]) -> int:
    """Bytes that the kernel may hold in the sockets of a family. A family with few processes can
    hold only little."""
    if len(family) < MANY:
        return 0
    count = 0
    for pid in family:
        with suppress(OSError):
            for name in proc.list_names(f"{pid}/fd"):
                with suppress(OSError):
                    count += proc.read_link(f"{pid}/fd/{name}").startswith("socket:")
    return count * SOCKET_BUFFER


def read_resident(pid: int) -> int:
    return statm(pid, 1)


def statm(pid: int, field: int) -> int:
    """Bytes in a field of the kernel's memory report on a process; 0 if it has ended."""
    try:
        with proc.open_file(f"{pid}/statm") as file:
            return int(file.read().split()[field]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def thread_memory(pid: int) -> int:
    """Bytes of a process whose first thread has ended, as another of its threads reports them."""
    for _ in range(TRIES):
        with suppress(OSError):
            if found := max(
                (read_resident(int(each)) for each in proc.list_names(f"{pid}/task")), default=0
            ):
                return found
    return 0


def own_memory(pid: int, with_shared: bool = True) -> int:
    """Bytes of a process without files: its share of shared memory, or all of it if the process
    hides its mappings."""
    for name, kinds in (
        ("smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")),
        ("status", ("RssAnon:", "RssShmem:")),
    ):
        counted = kinds if with_shared else kinds[:1]
        with suppress(OSError, ValueError), proc.open_file(f"{pid}/{name}") as file:
            if found := [int(line.split()[1]) for line in file if line.startswith(counted)]:
                return sum(found) << 10
    return 0
