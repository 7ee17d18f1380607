"""The first processes inside. They are trusted, and no other process can reach them: one makes the
views, one keeps the view of the model with its shell, and one runs checks after the model."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from parley.sandbox.inside import confine, usage, view
from parley.sandbox.inside.model_files import NotCopied
from parley.sandbox.inside.session import (
    SCRIPT,
    SETTLED,
    Bash,
    Output,
    Process,
    environment_of,
    processes,
    send_signal,
    standstill,
    state_of,
)
from parley.sandbox.inside.wire import Channel, Ended

LOOK = 0.05  # seconds between two looks at what is held
CROWDED = 20  # looks in a row at as many processes as there may be
START = 20.0  # seconds for a shell to be there
INTERRUPTED = 1.0  # seconds for it to come back
TIMED_OUT = 124
SCRIPT_OUTPUT = 100_000  # bytes that are kept of what a script writes
GONE = "ZX"  # states of processes that have ended
# A script and its arguments come through a descriptor: everybody may read a command line.
SCRIPTS = {
    "bash": [view.BASH, "--noprofile", "--norc", "-c", f'read -rd "" -u {SCRIPT}; eval "$REPLY"'],
    "python": [
        view.PYTHON,
        "-I",
        "-c",
        "def load():\n    import json, sys\n"
        f"    with open({SCRIPT}, encoding='utf-8') as file:\n"
        "        script, sys.argv[1:] = json.load(file)\n"
        "    return compile(script, '<string>', 'exec')\n"
        "exec(load())",
    ],
}


def main(settings: dict[str, Any]) -> None:
    """Start the keeper of the model's view, and when it asks for it, the one of checks."""
    # the first process gets no signal from inside that it has not asked for
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    channel = Channel(os.dup(0), os.dup(0))
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    ours, theirs = socket.socketpair()
    start(channel, ours, lambda: ModelKeeper(settings, channel, theirs).serve())
    theirs.close()
    # With the end of its first process, the kernel ends every process of the model's view.
    _, handed, _, _ = socket.recv_fds(ours, 1, 2)
    os.wait()
    if handed:
        start(channel, ours, lambda: serve_checks(settings, channel, *handed))
        os.wait()
    os._exit(0)


def start(channel: Channel, ours: socket.socket, serve: Callable[[], None]) -> None:
    """Start the first process of a view."""
    if confine.fork(confine.VIEW_SPACES):
        return
    ours.close()
    try:
        serve()
    except Ended:  # nobody is there any more; all processes of the view go with us
        pass
    except BaseException as wrong:
        channel.send({"unable": f"{type(wrong).__name__}: {wrong}"})
        os._exit(97)
    os._exit(0)


class Keeper:
    """Runs scripts of the task in a view, and kills processes that exceed their limits."""

    def __init__(self, settings: dict[str, Any], channel: Channel) -> None:
        self.settings, self.limits, self.channel = settings, settings["limits"], channel
        self.crowded, self.looked = 0, 0.0
        # statuses of what we started; of others none is kept, for numbers come again
        self.ends: dict[int, int | None] = {}
        self.left: list[Process] = []  # what has ended and may have left somebody who writes

    def run_script(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Run a script of the task in a process that shares nothing with the shell."""
        before, output = processes(), Output(SCRIPT_OUTPUT, apart=True)
        null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        command = [*SCRIPTS[asked["language"]]]
        if asked["language"] == "bash":
            command.append(asked["do"])  # what the script finds as its own name
            words = f"exec {SCRIPT}<&-; set -- {shlex.join(asked['arguments'])}\n{asked['command']}"
        else:
            words = json.dumps([asked["command"], asked["arguments"]])
        script = keep_text(words)
        check = asked["do"] == "check"
        environment = environment_of(asked["command"], self.settings["home"], check)
        started = Process(self.settings, command, environment, {0: null, SCRIPT: script}, True)
        os.close(null)
        os.close(script)
        self.ends[started.pid] = None
        ended = self.wait(started, monotonic() + asked["timeout"], output)
        if ended != "gone":
            self.end(before)
        started.drain(output)
        self.left.append(started)
        status = self.ends.pop(started.pid)
        return {
            **output.as_data(),
            "status": TIMED_OUT if ended == "late" else status,
            "timed_out": ended == "late",
        }

    def check(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Run a check, and end what it leaves behind."""
        before = processes()
        found = self.run_script(asked)
        self.end(before)
        self.left.pop().close()
        return found

    def wait(self, started: Process, until: float, output: Output, mark: bytes = b"") -> str:
        """Wait until a process has ended ("gone"), a command of a shell has ended ("done"), the
        time is over ("late"), or a limit was exceeded."""
        poll = select.poll()
        watched = [
            started.output,
            started.errors,
            started.handle,
            *([started.marks.fileno()] if isinstance(started, Bash) else []),
        ]
        for descriptor in watched:
            poll.register(descriptor, select.POLLIN)
        poll.register(self.channel.read, 0)  # which tells when nobody is there any more
        while (now := monotonic()) < until:
            if isinstance(started, Bash) and started.push():
                poll.register(started.orders, select.POLLOUT)
            elif isinstance(started, Bash):
                poll.register(started.orders, 0)
            ready = poll.poll(max(1.0, min(LOOK, until - now) * 1000))
            if any(descriptor == self.channel.read for descriptor, _ in ready):
                raise Ended
            if isinstance(started, Bash) and started.has_ended(mark):
                return "done"
            started.drain(output)
            self.reap()
            if self.ends[started.pid] is not None:
                return "gone"
            if why := self.exceeded_limit():
                return why
        return "late"

    def exceeded_limit(self) -> str:
        """The limit that the view has exceeded, if any."""
        if (now := monotonic()) - self.looked < LOOK:
            return ""
        self.looked, here = now, processes()
        self.crowded = self.crowded + 1 if len(here) >= self.limits["processes"] - 2 else 0
        family = {pid: each for pid, each in usage.processes().items() if pid != 1}
        if usage.memory_of(family, self.limits["memory"]) > self.limits["memory"]:
            return f"more than {self.limits['memory'] >> 20} MB of memory"
        return f"{self.limits['processes']} processes" if self.crowded > CROWDED else ""

    def end(self, spared: set[int]) -> None:
        """Kill every process that is not spared, including those that are just being started."""
        with standstill() as here:
            for pid in here - spared:
                send_signal(pid, signal.SIGKILL)
        until = monotonic() + SETTLED
        while left := {pid for pid in processes() - spared if state_of(pid) not in GONE}:
            for pid in left:  # one that a timer has woken may have started another
                send_signal(pid if monotonic() < until else -1, signal.SIGKILL)
            sleep(0.001)
        self.reap()

    def reap(self) -> None:
        """Reap processes that have ended, and empty pipes that nobody reads."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] in self.ends:
                    code = os.waitstatus_to_exitcode(found[1])
                    self.ends[found[0]] = code if code >= 0 else 128 - code
        for each in self.left:
            each.drain(Output(0))


class ModelKeeper(Keeper):
    """Keeps the view of the model, with its shell."""

    def __init__(
        self, settings: dict[str, Any], channel: Channel, successor: socket.socket
    ) -> None:
        super().__init__(settings, channel)
        self.written, self.successor = view.make_view(settings), successor
        self.lost = ""  # why the shell was started anew while nobody asked
        self.early = self.make_output()  # written between two commands
        self.bash = self.start_bash()
        channel.send({"ready": True})

    def make_output(self) -> Output:
        return Output(self.settings["most"])

    def start_bash(self) -> Bash:
        bash = Bash(self.settings)
        self.ends[bash.pid] = None
        output = self.make_output()
        if self.wait(bash, monotonic() + START, output, bash.order("exec 2>&1")) != "done":
            raise confine.Unable(f"bash did not start: {output.as_data()['output']}")
        return bash

    def serve(self) -> None:
        while True:
            alone = processes() == {self.bash.pid}
            poll = select.poll()
            poll.register(self.channel.read, select.POLLIN)
            poll.register(self.bash.handle, select.POLLIN)
            ready = poll.poll(None if alone else LOOK * 1000)
            self.bash.drain(self.early)
            self.reap()
            if self.ends[self.bash.pid] is not None:
                self.restart(processes(), "it ended")
            elif why := self.exceeded_limit():
                self.restart(set(), why)
            if any(descriptor == self.channel.read for descriptor, _ in ready):
                asked = self.channel.receive()
                if asked["do"] == "run":
                    self.channel.send(self.run(asked))
                elif asked["do"] == "prepare":
                    self.channel.send(self.run_script(asked))
                elif asked["live"]:
                    self.channel.send(self.check(asked))
                else:
                    self.hand_over(asked)
                    return

    def hand_over(self, asked: dict[str, Any]) -> None:
        """Leave a check to a new place, which gets what the model has written. All processes are
        killed first: our end would close what the shell reads, and it would write a history."""
        send_signal(-1, signal.SIGKILL)
        text = keep_text(json.dumps(asked))
        socket.send_fds(self.successor, [b"."], [text, self.written])

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Run a command in the shell. If the shell could not be kept, say why."""
        before, output, self.early = processes(), self.early, self.make_output()
        mark = self.bash.order(asked["command"])
        ended = self.wait(self.bash, monotonic() + asked["timeout"], output, mark)
        timed_out = ended == "late"
        if timed_out:
            ended = self.interrupt(before, output, mark)
        self.bash.drain(output)
        own = self.ends[self.bash.pid]
        status = TIMED_OUT if timed_out else self.bash.status if own is None else own
        if ended != "done":
            why = {"gone": "it ended", "late": "it did not come back"}.get(ended, ended)
            self.restart({"gone": processes(), "late": before}.get(ended, set()), why)
        why, self.lost = self.lost, ""
        return {**output.as_data(), "status": status, "timed_out": timed_out, "restarted": why}

    def interrupt(self, before: set[int], output: Output, mark: bytes) -> str:
        """Stop a command and nothing else: first with an interrupt, as a person at a terminal
        would, then by force."""
        for force in (False, True, False):
            if force:
                self.end({*before, self.bash.pid})
            else:
                with suppress(ProcessLookupError):
                    os.killpg(self.bash.pid, signal.SIGINT)
            if (ended := self.wait(self.bash, monotonic() + INTERRUPTED, output, mark)) != "late":
                return ended
        return "late"

    def restart(self, spared: set[int], why: str) -> None:
        """Start a new shell in the same view, after killing the old one and every process that
        is not spared."""
        self.lost = why
        self.end(spared - {self.bash.pid})
        self.bash.close()
        del self.ends[self.bash.pid]
        self.crowded = 0
        try:
            self.bash = self.start_bash()
        except (BlockingIOError, confine.Unable):  # those who were spared leave no room, or end it
            self.end(set())
            self.bash = self.start_bash()


def serve_checks(settings: dict[str, Any], channel: Channel, first: int, written: int) -> None:
    """Run checks in a new view with a copy of what the model wrote."""
    asked = json.loads(os.pread(first, os.fstat(first).st_size, 0))
    os.close(first)
    try:
        view.copy_view(settings, written, asked["proc"])
    except NotCopied as wrong:
        said = f"what the model has written cannot be copied, so nothing was checked: {wrong}\n"
        failed = {"output": "", "errors": said, "cut": False, "status": 1, "timed_out": False}
        while True:
            channel.send(failed)
            channel.receive()
    keeper = Keeper(settings, channel)
    while True:
        channel.send(keeper.check(asked))
        asked = channel.receive()


def keep_text(words: str) -> int:
    """Keep a text in memory; returns a descriptor from which it is read."""
    coded = words.encode("utf-8", "replace")
    descriptor = os.memfd_create("text")
    if os.write(descriptor, coded) != len(coded):
        raise Ended  # half a script says nothing
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
