"""Runs one program, and ends it with everything that it has started: when it is told to (SIGTERM)
and when its owner is gone, however that ended.

It is run as a file, without Parley: `python -I _server_keeper.py OWNER PATIENCE FOLDER PROGRAM
...`. It prints what the program prints, without the secret in the first line of standard input. The
program gets PATIENCE seconds to end by itself. In the end FOLDER is removed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

LOOK = 0.2  # seconds between two looks at the owner
PIECE = 65_536  # bytes that are copied at once
LIMIT = 10.0  # seconds in which processes that were killed must be gone
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
IS_LINUX = sys.platform == "linux"


def keep(owner: int, patience: float, command: list[str]) -> int:
    """Run the program until it ends, or until it is ended; its exit status as in a shell."""
    secret, told = sys.stdin.buffer.readline().strip(), list[int]()
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner decides what Ctrl-C means
    if IS_LINUX:
        ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
    try:
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    except OSError as wrong:
        print(f"{command[0]} cannot be started: {wrong.strerror}", flush=True)
        return 127
    assert program.stdout is not None
    copying = Thread(target=copy, args=(program.stdout.fileno(), secret), daemon=True)
    copying.start()
    while program.poll() is None and not told and os.getppid() == owner:
        time.sleep(LOOK)
    end(program, patience)
    copying.join(1.0)
    code = program.returncode
    return code if code >= 0 else 128 - code


def copy(printed: int, secret: bytes) -> None:
    """Print what a program prints as soon as it does, without the secret."""
    rest = b""
    while piece := os.read(printed, PIECE):
        text = (rest + piece).replace(secret, b"[key]")
        # what may be the beginning of the secret waits for the next piece
        cut = next((n for n in range(len(secret), 0, -1) if text.endswith(secret[:n])), 0)
        text, rest = text[: len(text) - cut], text[len(text) - cut :]
        with suppress(OSError):  # a full disk does not stop the program
            os.write(sys.stdout.fileno(), text)


def end(program: subprocess.Popen[bytes], patience: float) -> None:
    """End the program, and then whatever it has left behind."""
    if program.poll() is None:
        program.terminate()
        with suppress(subprocess.TimeoutExpired):
            program.wait(patience)
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        for each in descendants() if IS_LINUX else ():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        program.poll()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # there is none left
            break
        time.sleep(LOOK / 4)
    program.wait()


def descendants() -> Iterator[int]:
    """All processes below this one. Orphans among them are its children."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # after the name, which may contain anything: the state and the parent
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    yield from below - {os.getpid()}


if __name__ == "__main__":
    try:
        sys.exit(keep(int(sys.argv[1]), float(sys.argv[2]), sys.argv[4:]))
    finally:
        shutil.rmtree(sys.argv[3], ignore_errors=True)
