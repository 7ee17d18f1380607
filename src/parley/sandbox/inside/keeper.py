"""The first process of a shell's view. It is trusted, and no other process inside can reach it.
It keeps the shell and runs checks."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from parley.sandbox.inside import confine, usage, view
from parley.sandbox.inside.hold import release
from parley.sandbox.inside.session import (
    SCRIPT,
    Bash,
    Output,
    Started,
    count_switches,
    environment_of,
    has_moved,
    processes,
    settings_set_aside,
    signalled,
    standstill,
    state,
)
from parley.sandbox.inside.wire import Channel, Ended

LOOK = 0.05  # seconds between two looks at what is held
CROWDED = 20  # looks in a row at as many processes as there may be
START = 20.0  # seconds for a shell to be there
INTERRUPTED = 1.0  # seconds for it to come back
TIMED_OUT = 124
SCRIPT_OUTPUT = 100_000  # bytes that are kept of what a script writes
GONE = "ZX"  # states of processes that have ended
LEADING, HARMLESS = ("/proc", "/dev"), {"/dev/null", "/dev/shm", "/dev/zero", "/dev/urandom"}
OURS_LINKS = {"/etc/mtab"}
# folders that the model cannot write
FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64")
MORE = ("libexec", "libx32", "share", "include", "src", "games")
SKIPPED = {"/proc", "/dev", "/sys", *(f"/{n}" for n in FOLDERS)} | {
    f"/usr/{name}" for name in (*FOLDERS, *MORE)
}
MOVED = "a background process of the model ran during a check"
# A script and its arguments come through a descriptor: everybody may read a command line.
SCRIPTS = {
    "bash": ["/usr/bin/bash", "--noprofile", "--norc", "-c", f". /dev/fd/{SCRIPT}"],
    "python": [
        "/usr/bin/python3",
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
    # the first process gets no signal from inside that it has not asked for
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    channel = Channel(os.dup(0), os.dup(0))
    try:
        view.made(settings)
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        keeper = Keeper(settings, channel)
    except BaseException as wrong:
        channel.send({"unable": f"{type(wrong).__name__}: {wrong}"})
        os._exit(97)
    channel.send({"ready": True})
    with suppress(Ended):
        keeper.serve()
    os._exit(0)  # nobody is there any more; the rest of this namespace goes with us


def find_link_to_processes() -> str:
    """Find a link that the model left and that leads to /proc or /dev. A check that opens it
    would reveal what the check knows."""
    waiting = ["/"]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                leads = os.path.normpath(os.path.join(folder, os.readlink(entry.path)))
                if (
                    leads.startswith(LEADING)
                    and leads not in HARMLESS
                    and entry.path not in OURS_LINKS
                ):
                    return entry.path
            elif entry.is_dir(follow_symlinks=False) and entry.path not in SKIPPED:
                waiting.append(entry.path)
    return ""


class Keeper:
    """Carries out requests from outside, one after the other, and kills processes that exceed
    their limits meanwhile."""

    def __init__(self, settings: dict[str, Any], channel: Channel) -> None:
        self.settings, self.limits, self.channel = settings, settings["limits"], channel
        self.crowded, self.looked = 0, 0.0
        # threads of the model that stand still during a check, and how often each had run before
        self.standing: dict[tuple[int, str], int] = {}
        self.lost = ""  # why the shell was started anew while nobody asked
        # statuses of what we started; of others none is kept, for numbers come again
        self.ends: dict[int, int | None] = {}
        self.left: list[Started] = []  # what has ended and may have left somebody who writes
        self.early = self.output()  # written between two commands
        self.bash = self.started()

    def output(self) -> Output:
        return Output(self.settings["most"])

    def started(self) -> Bash:
        bash = Bash(self.settings)
        self.ends[bash.pid] = None
        if (
            self.waited(bash, monotonic() + START, said := self.output(), bash.order("exec 2>&1"))
            != "done"
        ):
            raise confine.Unable(f"bash did not start: {said.as_data()['output']}")
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
                self.anew(processes(), "it ended")
            elif why := self.taken():
                self.anew(set(), why)
            if any(descriptor == self.channel.read for descriptor, _ in ready):
                asked = self.channel.receive()
                self.channel.send(self.run(asked) if asked["do"] == "run" else self.script(asked))

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Run a command in the shell. If the shell could not be kept, say why."""
        before, output, self.early = processes(), self.early, self.output()
        mark = self.bash.order(asked["command"])
        ended = self.waited(self.bash, monotonic() + asked["timeout"], output, mark)
        timed_out = ended == "late"
        if timed_out:
            ended = self.interrupted(before, output, mark)
        self.bash.drain(output)
        own = self.ends[self.bash.pid]
        status = TIMED_OUT if timed_out else self.bash.status if own is None else own
        if ended != "done":
            why = {"gone": "it ended", "late": "it did not come back"}.get(ended, ended)
            self.anew({"gone": processes(), "late": before}.get(ended, set()), why)
        why, self.lost = self.lost, ""
        return {**output.as_data(), "status": status, "timed_out": timed_out, "restarted": why}

    def interrupted(self, before: set[int], output: Output, mark: bytes) -> str:
        """Stop a command and nothing else: first with an interrupt, as a person at a terminal
        would, then by force."""
        for force in (False, True, False):
            if force:
                self.end({*before, self.bash.pid})
            else:
                with suppress(ProcessLookupError):
                    os.killpg(self.bash.pid, signal.SIGINT)
            if (ended := self.waited(self.bash, monotonic() + INTERRUPTED, output, mark)) != "late":
                return ended
        return "late"

    def script(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Run a script of the task in a process that shares nothing with the shell. During a
        check all other processes are stopped. If one of them ran anyway, all are killed and the
        check is repeated."""
        if asked["do"] != "check":
            return self.tried(asked)
        if len(processes()) > self.limits["processes"] // 2:
            self.end({self.bash.pid})  # so many that a check might find no room
        if link := find_link_to_processes():
            said = f"{link} is a link to what a check itself is or reads: not checked\n"
            return {"output": "", "errors": said, "cut": False, "status": 1, "timed_out": False}
        found = self.checked(asked)
        if found is None:
            self.anew(set(), MOVED)
            found = self.checked(asked)
        return {"unable": MOVED} if found is None else found

    def checked(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """Run a check; None if another process ran at the same time."""
        with (
            standstill(held=True) as before,
            settings_set_aside(asked["command"], self.settings["home"]),
        ):
            self.standing = count_switches(before)
            found = self.tried(asked)
            moved, self.standing = has_moved(self.standing), {}
            self.end(before)
        self.left.pop().close()
        return None if moved else found

    def tried(self, asked: dict[str, Any]) -> dict[str, Any]:
        before, output = processes(), Output(SCRIPT_OUTPUT, apart=True)
        null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        command = [*SCRIPTS[asked["language"]]]
        if asked["language"] == "bash":
            command.append(asked["do"])  # what the script finds as its own name
            words = f"exec {SCRIPT}<&-; set -- {shlex.join(asked['arguments'])}\n{asked['command']}"
        else:
            words = json.dumps([asked["command"], asked["arguments"]])
        script = os.memfd_create("script")
        coded = words.encode("utf-8", "replace")
        if os.write(script, coded) != len(coded):
            raise Ended  # half a script says nothing
        os.lseek(script, 0, os.SEEK_SET)
        check = asked["do"] == "check"
        environment = environment_of(asked["command"], self.settings["home"], check)
        give = {0: null, SCRIPT: script}
        # what prepares a machine keeps nothing from the model, and its processes are looked into
        started = Started(self.settings, command, environment, give, script=True, trusted=check)
        os.close(null)
        os.close(script)
        self.ends[started.pid] = None
        ended = self.waited(started, monotonic() + asked["timeout"], output)
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

    def waited(self, started: Started, until: float, output: Output, mark: bytes = b"") -> str:
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
            if isinstance(started, Bash) and started.said(mark):
                return "done"
            started.drain(output)
            self.reap()
            if self.ends[started.pid] is not None:
                return "gone"
            if why := self.taken():
                return why
        return "late"

    def taken(self) -> str:
        """The limit that the view has exceeded, if any."""
        if (now := monotonic()) - self.looked < LOOK:
            return ""
        self.looked, here = now, processes()
        if self.standing and has_moved(self.standing):
            return MOVED
        self.crowded = self.crowded + 1 if len(here) >= self.limits["processes"] - 2 else 0
        family = {pid: each for pid, each in usage.processes().items() if pid != 1}
        if usage.memory_of(family, self.limits["memory"]) > self.limits["memory"]:
            return f"more than {self.limits['memory'] >> 20} MB of memory"
        return f"{self.limits['processes']} processes" if self.crowded > CROWDED else ""

    def anew(self, spared: set[int], why: str) -> None:
        """Start a new shell in the same view, after killing the old one and every process that
        is not spared."""
        self.lost = why
        self.end(spared - {self.bash.pid})
        self.bash.close()
        del self.ends[self.bash.pid]
        self.crowded = 0
        try:
            self.bash = self.started()
        except (BlockingIOError, confine.Unable):  # those who were spared leave no room, or end it
            self.end(set())
            self.bash = self.started()

    def end(self, spared: set[int]) -> None:
        """Kill every process that is not spared, including those that are just being started."""
        with standstill() as here:
            for pid in here - spared:
                signalled(pid, signal.SIGKILL)
        while any(state(pid) not in GONE for pid in processes() - spared):
            sleep(0.001)
        self.reap()

    def reap(self) -> None:
        """Reap processes that have ended, and empty pipes that nobody reads."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if os.WIFSTOPPED(found[1]):  # held for a check
                    if not self.standing:
                        release(found[0])
                elif found[0] in self.ends:
                    code = os.waitstatus_to_exitcode(found[1])
                    self.ends[found[0]] = code if code >= 0 else 128 - code
        for each in self.left:
            each.drain(Output(0))
