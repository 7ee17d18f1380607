"""The arguments of this process, as `ps` shows them to everybody on this machine and Ray records
them: without the password of a database."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from pathlib import Path

from parley.store import passwords_in


def mask_passwords() -> None:
    """Replace passwords in this process's arguments by stars. `sys.argv` keeps them."""
    secrets = {secret for word in sys.argv for secret in passwords_in(word)}
    if not secrets or sys.platform != "linux":
        return
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end in proc(5)
        if 0 < start < end:
            shown = ctypes.string_at(start, end - start)
            for secret in sorted(map(str.encode, secrets), key=len, reverse=True):
                shown = shown.replace(secret, b"*" * len(secret))
            ctypes.memmove(start, shown, end - start)
