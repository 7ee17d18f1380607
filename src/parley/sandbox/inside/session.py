"""Processes in a view, as its keeper starts them: with root's rights inside the view,
and their output read through a pipe."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any

from parley.sandbox.inside import proc, view

MARKS = 250  # the descriptor on which a shell says that a command has ended
SCRIPT = 250  # the descriptor from which a script of the task is read
MODEL = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "USER": "root", "LOGNAME": "root",
    "SHELL": "/bin/bash", "LANG": "C.UTF-8", "TERM": "dumb", "PS1": "", "PS2": "",
}  # fmt: skip
# The same folders as a model's, those where it can write last.
OURS = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin",
    "USER": "root", "LOGNAME": "root", "SHELL": "/bin/bash", "LANG": "C.UTF-8", "TERM": "dumb",
    "PYTHONNOUSERSITE": "1", "PYTHONSAFEPATH": "1", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null", "OPENSSL_CONF": "/dev/null",
}  # fmt: skip
# In a check tools find no settings that the model may have left: git starts nothing that a
# repository names when it only looks at it, and `file` knows what it came with.
MAGIC = "/usr/share/misc/magic"
CHECKS = {
    **OURS, "GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "log.showSignature", "GIT_CONFIG_VALUE_1": "false",
    **({"MAGIC": MAGIC} if os.path.exists(f"{MAGIC}.mgc") else {}),
}  # fmt: skip
# A script that names the home of the user means the one where the model works.
NAMES_HOME = re.compile(
    r"(?<![\w~])~(?=[/\s;)|&\"']|$)|\bHOME\b|\bPath\.home\b|\bexpanduser\b|"
    r"(?:^|[;&|({\s])cd[ \t]*(?=[;&|)\n]|$)"
)
# States of threads that do nothing: stopped, ended, or waiting in the kernel until somebody who
# stands still goes on.
STILL = "TtZXD"
SETTLED = 20.0  # seconds for all to stand still; a busy machine is slow


def environment_of(script: str, home: str, check: bool) -> dict[str, str]:
    """The environment variables of a task's script. The home folder of a check is empty, unless
    the script names it."""
    if not check:
        return {**OURS, "HOME": home}
    return {**CHECKS, "HOME": home if NAMES_HOME.search(script) else view.EMPTY_HOME}


class Output:
    """Collected output; only its beginning and its end are kept. `apart` collects standard error
    separately."""

    def __init__(self, most: int, apart: bool = False) -> None:
        self.errors = Output(most) if apart else None
        self.half, self.head, self.tail, self.size = most // 2, bytearray(), bytearray(), 0

    def take(self, part: bytes) -> None:
        self.size += len(part)
        room = self.half - len(self.head)
        self.head += part[:room]
        self.tail += part[room:]
        if len(self.tail) > 4 * self.half:
            del self.tail[: len(self.tail) - self.half]

    def as_data(self) -> dict[str, Any]:
        """The output as text; bytes that are not UTF-8 are replaced."""
        del self.tail[: max(0, len(self.tail) - self.half)]
        left = self.size - len(self.head) - len(self.tail)
        between = f"\n[{left} bytes are left out here]\n".encode() if left else b""
        errors = {} if self.errors is None else {"errors": self.errors.as_data()["output"]}
        return {
            "output": (self.head + between + self.tail).decode("utf-8", "replace"),
            "cut": left > 0,
            **errors,
        }


class Process:
    """A process in the view. We keep its output open as well, so that a process that still
    writes there is not killed by SIGPIPE."""

    def __init__(
        self,
        settings: dict[str, Any],
        command: list[str],
        environment: dict[str, str],
        give: dict[int, int],
        script: bool = False,
    ) -> None:
        self.output, self.theirs = open_pipe()
        # scripts of the task have a second one for what they write to standard error
        self.errors, self.their_errors = open_pipe() if script else (self.output, self.theirs)
        try:
            self.pid = os.fork()
        except OSError:
            self.shut()
            raise
        if self.pid == 0:
            try:
                given = {1: self.theirs, 2: self.their_errors, **give}
                become(settings, command, environment, given)
            except BaseException as wrong:
                os.write(2, f"{wrong}\n".encode())
            os._exit(126)
        self.handle = os.pidfd_open(self.pid)

    def drain(self, into: Output) -> None:
        """Read what is there now, but do not wait for more."""
        for descriptor, output in {self.output: into, self.errors: into.errors or into}.items():
            room = 1 << 18
            with suppress(BlockingIOError):
                while room > 0:
                    part = os.read(descriptor, 1 << 16)
                    output.take(part)
                    room -= len(part)

    def shut(self) -> None:
        for descriptor in {self.output, self.theirs, self.errors, self.their_errors}:
            os.close(descriptor)

    def close(self) -> None:
        self.shut()
        os.close(self.handle)


def open_pipe() -> tuple[int, int]:
    """A pipe that we read without blocking; writers block as usual."""
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(theirs, True)
    return ours, theirs


def become(
    settings: dict[str, Any],
    command: list[str],
    environment: dict[str, str],
    give: dict[int, int],
) -> None:
    """Prepare a new process before it executes another program."""
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores these, and its children would too
    # if memory is short, the first to go are these
    with suppress(OSError), proc.open_file("self/oom_score_adj", "w") as file:
        file.write("1000")
    for place, descriptor in give.items():
        os.dup2(descriptor, place)
    os.closerange(3, MARKS)
    os.closerange(MARKS + (MARKS in give), 1024)
    os.umask(0o022)
    os.chdir(settings["folder"] if os.path.isdir(settings["folder"]) else "/")
    view.confine_process(settings["limits"], bytes.fromhex(settings["filter"]))
    os.execve(command[0], command, environment)


class Bash(Process):
    """The shell. It is interactive, but has no terminal, so that an interrupt ends a command and
    not the shell."""

    def __init__(self, settings: dict[str, Any]) -> None:
        # Sockets: unlike pipes they cannot be opened a second time under /proc.
        self.orders, self.orders_end = socket.socketpair()
        self.marks, self.marks_end = socket.socketpair()
        self.status, self.heard, self.rest = 0, b"", b""
        self.orders.setblocking(False)
        self.marks.setblocking(False)
        # it wants one to set, and complains there that it cannot have it for itself
        self.terminal = os.openpty()
        command = ["/usr/bin/bash", "--noprofile", "--norc", "--noediting", "-i"]
        super().__init__(
            settings,
            command,
            {**MODEL, "HOME": settings["home"]},
            {0: self.orders_end.fileno(), 2: self.terminal[1], MARKS: self.marks_end.fileno()},
        )

    def order(self, command: str) -> bytes:
        """Start a command. Returns the mark that is printed together with the exit status when the
        command has ended.

        The command is quoted as a whole, so that nothing in it can run into what follows. Its
        processes do not inherit our descriptors.
        """
        mark = os.urandom(12).hex()
        quoted = command.replace("\0", "").replace("'", "'\\''")
        before = (
            f"{{ [[ $- == *e* ]] || (\\builtin exit {self.status}); }} 2>/dev/null\n"
            if self.status
            else ""
        )
        lines = f"\\builtin eval '{quoted}' </dev/null {MARKS}>&-\n\n"
        after = f"{{ \\builtin printf '%s %d\\n' {mark} \"$?\" >&{MARKS}; }} 2>/dev/null\n"
        self.rest = (before + lines + after).encode("utf-8", "replace")
        return mark.encode()

    def push(self) -> bool:
        """Write as much of a request as the shell accepts; returns whether some of it is left."""
        with suppress(BlockingIOError):
            while self.rest:
                self.rest = self.rest[self.orders.send(self.rest) :]
        return bool(self.rest)

    def has_ended(self, mark: bytes) -> bool:
        """Whether a command has ended."""
        with suppress(BlockingIOError):
            self.heard = (self.heard + self.marks.recv(4096))[-8192:]
        for line in self.heard.splitlines(keepends=True):
            if line.startswith(mark + b" ") and line.endswith(b"\n"):
                self.status, self.heard = int(line[len(mark) : -1]), b""
                return True
        return False

    def shut(self) -> None:
        super().shut()
        for each in (self.orders, self.orders_end, self.marks, self.marks_end):
            each.close()
        for descriptor in self.terminal:
            os.close(descriptor)


def processes() -> set[int]:
    """All processes in the view except the first one, which is us."""
    return {int(name) for name in proc.list_names() if name.isdecimal()} - {1}


def read_fact(pid: int, name: str) -> str:
    """The kernel's facts on a process; empty if it has ended."""
    try:
        with proc.open_file(f"{pid}/{name}") as file:
            return file.read()
    except OSError:
        return ""


def state_of(pid: int) -> str:
    return read_fact(pid, "stat").rpartition(")")[2].strip()[:1] or "X"


def threads(pid: int) -> list[str]:
    """The entry of `read_fact` for each thread of a process."""
    try:
        return [f"task/{name}" for name in proc.list_names(f"{pid}/task")]
    except OSError:
        return []


def is_still(pid: int) -> bool:
    """Whether no thread of a process is running. Its first thread may have ended while others
    still run."""
    states = (read_fact(pid, f"{thread}/stat").rpartition(")")[2] for thread in threads(pid))
    return all((each.strip()[:1] or "X") in STILL for each in states)


def send_signal(pid: int, number: int) -> None:
    """Send a signal; -1 sends it to all processes except us at once."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def standstill() -> Iterator[set[int]]:
    """Stop all processes for a while, so that they cannot start new ones. A process that does
    not stop in time is killed."""
    resting = {pid for pid in processes() if state_of(pid) in "Tt"}
    send_signal(-1, signal.SIGSTOP)
    until = monotonic() + SETTLED
    while (moving := {pid for pid in processes() if not is_still(pid)}) and monotonic() < until:
        for pid in moving:  # somebody may have been woken
            send_signal(pid, signal.SIGSTOP)
        sleep(0.001)
    for pid in moving:
        send_signal(pid, signal.SIGKILL)
    here = processes()
    try:
        yield here
    finally:
        for pid in here - resting:
            send_signal(pid, signal.SIGCONT)
