"""What a program may use."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bounds on one program. Time on the processor decides; the clock only ends what does not end
    by itself."""

    cpu: int = 10  # seconds on the processor, all its processes together
    wall: float = 20.0  # seconds by the clock, all calls together
    memory: int = 512 * MB  # held by all its processes together
    space: int = 1024 * MB  # address space, a process
    file: int = 16 * MB  # the largest file
    disk: int = 32 * MB  # all files together
    # open at a time; with the number of processes this bounds what the kernel holds for them
    files: int = 48
    processes: int = 40
