"""The first process of a sandbox: already started and trusted. It forks a confined process for
each program, and watches it."""

from __future__ import annotations

import builtins
import fcntl
import gc
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from parley.sandbox.inside import confine
from parley.sandbox.inside.judge import judge_once, serve_problem
from parley.sandbox.inside.program import serve
from parley.sandbox.inside.usage import Times, all_below, memory_of, processes
from parley.sandbox.inside.wire import Channel, pack, refuse_object, unpack

LOOK = {"program": 0.05, "judge": 0.05, "judges": 0.5}  # seconds between two looks at what runs
POLITE = 5  # steps that what runs stands back behind its watcher
# that the first process may have open: each child closes them, one by one on some systems
DESCRIPTORS = 1024
COMMON = """
bisect cmath collections copy datetime decimal fractions functools heapq itertools json math operator re string textwrap typing
"""  # noqa: E501
ROLES = {"program": serve, "judge": judge_once, "judges": serve_problem}


def main(settings: dict[str, Any]) -> None:
    """Become an unprivileged user, then run one process over standard input and output, or fork
    processes on request."""
    if settings["uid"]:
        os.setgroups([])
        os.setresgid(*[settings["uid"]] * 3)
        os.setresuid(*[settings["uid"]] * 3)
        confine.control(confine.DUMPABLE, 1, "dumpable")  # so that /proc/self/uid_map is ours
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    confine.set_limit("NOFILE", DESCRIPTORS)
    confine.control(confine.SUBREAPER, 1, "subreaper")  # what a process leaves behind comes to us
    # if memory is short, the first to go are these
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    for name in COMMON.split():
        __import__(name)
    # scripts end with them, and Python has them from what we leave out
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    rehearse()
    gc.collect()
    gc.freeze()
    room = Room(settings)
    if settings["nested"]:
        control = socket.socket(fileno=os.dup(0))
        control.sendall(b"ready")
        room.serve(control)
    else:
        room.start(settings["role"], Channel(os.dup(0), os.dup(1)), os.dup(2))
        room.serve(None)


def rehearse() -> None:
    """Warm up: execute what every process will execute, so that its children share the memory
    that the interpreter fills here."""
    read, write = os.pipe()
    channel = Channel(read, write)
    for number in range(20):
        namespace: dict[str, Any] = {}
        exec(
            compile(
                "def f(x):\n    return [x + 1, str(x)]\ntry:\n    assert f(1) == 2\n"
                "except AssertionError:\n    pass",
                "",
                "exec",
            ),
            namespace,
        )
        channel.send({"ok": pack({"a": (number, 0.5), "b": namespace["f"](number)}, refuse_object)})
        unpack(channel.receive()["ok"], refuse_object)
    os.close(read)
    os.close(write)


class WatchedProcess:
    """A confined process and the facts that its watcher needs."""

    def __init__(self, pid: int, status: int, role: str) -> None:
        self.pid, self.status, self.handle = pid, status, os.pidfd_open(pid)
        self.pause, self.looked, self.peak = LOOK[role], time.monotonic(), 0
        self.ending = ""  # why it is being ended
        # a judge that stays has no end
        self.times, self.cpu = None if role == "judges" else Times(), 0.0


class Room:
    """All confined processes of one sandbox. A process is killed when nobody waits for it any
    more, or when it exceeds a limit."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.poll = select.poll()
        self.by_descriptor: dict[int, WatchedProcess] = {}

    def serve(self, control: socket.socket | None) -> None:
        """Start requested processes and watch them; if no more requests can come, return when
        the last process has ended."""
        if control is not None:
            self.poll.register(control, select.POLLIN)
        while control is not None or self.by_descriptor:
            pauses = [each.pause for each in self.by_descriptor.values()]
            events = self.poll.poll(min(pauses) * 1000 if pauses else None)
            for descriptor, _ in events:
                if control is not None and descriptor == control.fileno():
                    data, found, *_ = socket.recv_fds(control, 1, 2)
                    if not data:
                        # nobody is there any more; the rest of this namespace goes with us
                        os._exit(0)
                    self.start(
                        "judges" if data == b"j" else "program",
                        Channel(found[0], found[0]),
                        found[1],
                        control,
                    )
                elif (watched := self.by_descriptor.get(descriptor)) is not None:
                    self.finish(watched, "not wanted")
            self.look()
        if self.settings["folder"] != "/tmp":
            shutil.rmtree(self.settings["folder"], ignore_errors=True)
        os._exit(0)

    def start(
        self, role: str, channel: Channel, status: int, control: socket.socket | None = None
    ) -> None:
        uid, gid = os.getuid(), os.getgid()
        try:
            pid = confine.fork(confine.PROGRAM_SPACES if self.settings["nested"] else 0)
        except (confine.Unable, OSError) as wrong:
            report(status, f"unable: {wrong}")
            pid = -1
        if pid == 0:
            run_confined(self.settings, channel, status, role, (uid, gid))
        if pid > 0:
            watched = WatchedProcess(pid, status, role)
            events = {watched.handle: select.POLLIN, status: select.POLLIN}
            if control is None:
                # only that it is closed: a container's client has no other way to say so
                events[channel.read] = 0
            for descriptor, which in events.items():
                self.by_descriptor[descriptor] = watched
                self.poll.register(descriptor, which)
        else:
            os.close(status)
        if control is not None:
            os.close(channel.read)

    def look(self) -> None:
        """Kill processes that hold too much memory or have used too much CPU time. A process
        that has just started cannot have done so."""
        now = time.monotonic()
        due = {
            each
            for each in self.by_descriptor.values()
            if now - each.looked > each.pause and not each.ending
        }
        here = processes() if due else {}
        limits = self.settings["limits"]
        for watched in due:
            # Without a namespace of its own, what it leaves behind comes to us.
            family = all_below(watched.pid if self.settings["nested"] else os.getpid(), here)
            family |= {watched.pid: here[watched.pid]} if watched.pid in here else {}
            held = memory_of(family, limits["memory"], ours=watched.times is None)
            watched.peak = max(watched.peak, held)
            if watched.times is not None:
                watched.cpu = watched.times.seconds(family)
            watched.looked = time.monotonic()
            if watched.peak > limits["memory"]:
                self.finish(watched, "memory")
            elif watched.cpu > limits["cpu"]:
                self.finish(watched, "cpu")

    def finish(self, watched: WatchedProcess, why: str) -> None:
        """Kill a process and its descendants, and report how it ended. A process that was already
        gone has ended by itself.

        Processes that hold much memory take long to exit. Nobody waits for them; they are reported
        when they are gone.
        """
        pid, result, usage = os.wait4(watched.pid, os.WNOHANG)
        if not pid and not watched.ending:
            watched.ending = why
            kill(watched.pid)
            self.forget(watched, {watched.handle})
        if not pid:
            return
        self.forget(watched, set())
        code = os.waitstatus_to_exitcode(result)
        ended = watched.ending or (f"signal {-code}" if code < 0 else f"status {code}")
        while not self.settings["nested"] and (left := all_below(os.getpid(), processes())):
            for each in left:
                kill(each)
            reap(left)
        cpu, peak = (
            max(watched.cpu, usage.ru_utime + usage.ru_stime),
            max(watched.peak, usage.ru_maxrss * 1024),
        )
        report(watched.status, ended, cpu, peak)
        os.close(watched.handle)
        os.close(watched.status)

    def forget(self, watched: WatchedProcess, kept: set[int]) -> None:
        """Stop listening to the descriptors of a process."""
        for descriptor in [
            each for each, of in self.by_descriptor.items() if of is watched and each not in kept
        ]:
            self.poll.unregister(descriptor)
            del self.by_descriptor[descriptor]


def report(status: int, end: str, cpu: float = 0.0, peak: int = 0) -> None:
    with suppress(OSError):
        os.write(status, json.dumps({"end": end, "cpu": round(cpu, 4), "peak": peak}).encode())


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def reap(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def run_confined(
    settings: dict[str, Any], channel: Channel, status: int, role: str, who: tuple[int, int]
) -> None:
    """The child process that will run foreign code; this function never returns."""
    try:
        # first: so many may be open here that a limit would leave no room
        channel, status = keep_open(channel, status)
        confine.control(confine.DIE_WITH_PARENT, signal.SIGKILL, "die with parent")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()  # its own group: kill(0, 9) would cross into ours
        os.nice(POLITE)
        if settings["nested"]:
            confine.map_own_ids(*who)
            confine.mount_own_files(settings["limits"])
        os.chdir(settings["folder"])
        confine.set_limits(settings["limits"])
        # it bounds the time of those that it makes, which the filter keeps from all others
        stays = role == "judges"
        if not stays:
            confine.set_limit("CPU", settings["limits"]["cpu"])
        confine.drop_rights(bytes.fromhex(settings["filters"]["judges" if stays else "program"]))
    except BaseException as wrong:
        report(status, f"unable: {wrong}")
        os._exit(97)
    try:
        os.close(status)
        channel.send("ready")
        ROLES[role](channel, settings["limits"])
    finally:
        os._exit(0)


def keep_open(channel: Channel, status: int) -> tuple[Channel, int]:
    """Open the channel, and the connection to the watcher, which is closed before anything runs.
    All other descriptors are closed."""
    null = os.open("/dev/null", os.O_RDWR)
    wanted = [
        fcntl.fcntl(each, fcntl.F_DUPFD, 10)
        for each in (null, null, null, channel.read, channel.write, status)
    ]
    for place, descriptor in enumerate(wanted):
        os.dup2(descriptor, place)
    os.closerange(len(wanted), DESCRIPTORS)
    return Channel(3, 4), 5
