"""Programs that attack the sandbox and its verdicts. Each really tries, and would be judged correct
if it succeeded."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from parley.sandbox.seccomp import MACHINES, NOT_IN_PROGRAMS, REFUSED

# What all of them begin with. The name of the process shows, on this machine, whether any is left.
BEGIN = """
import ctypes, json, os, sys, time
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.prctl(15, b"hostile", 0, 0, 0)

def call(number, *arguments):
    return LIBC.syscall(number, *arguments) >= 0

def works(act, *arguments):
    try:
        act(*arguments)
        return True
    except OSError:
        return False

def frame(body):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    os.write(4, len(body).to_bytes(4, "big") + body)
"""
# What those end with that are right only if they reached something.
REACHED = """
def answer(x):
    return 2 * x + 2 if attack() else -1
"""
TESTS = ("assert answer(20) == 42", "assert answer(3) == 8")


@dataclass(frozen=True)
class Attack:
    """A program, the tests that it must not pass, and how it has to fail: a fault that shows that
    it ran."""

    code: str
    fault: str = "AssertionError"  # how its first fault begins
    end: str = ""
    tests: tuple[str, ...] = TESTS
    prelude: str = ""
    before: str = ""  # another program that runs first
    slow: bool = False

    def filled(self, **words: object) -> str:
        code = self.code + (REACHED if "def attack(" in self.code else "")
        numbers = {
            name: both[MACHINES[platform.machine()][1]]
            for name, both in {**REFUSED, **NOT_IN_PROGRAMS}.items()
        }
        text = f"{BEGIN}\nNR = {numbers!r}\n{code}"
        for name, value in words.items():
            text = text.replace(f"@{name}@", str(value))
        return text
