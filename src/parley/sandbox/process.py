"""The first process of a sandbox, seen from outside, and how it starts the confined ones."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict
from typing import Literal

from parley.errors import SandboxError
from parley.sandbox.cgroups import Group, host_kills
from parley.sandbox.kinds import Kind, sources
from parley.sandbox.limits import Limits
from parley.sandbox.seccomp import make_filter
from parley.sandbox.talk import CLOSE, Gone, Late, Talk

Role = Literal["program", "judge"]
START = 30.0  # seconds for a sandbox to start; a loaded machine is slow


SOURCES = sources("wire", "confine", "program", "judge", "proc", "usage", "zygote")


class OutermostProcess:
    """A started command: the outermost process of a sandbox."""

    def __init__(
        self,
        kind: Kind,
        limits: Limits,
        group: Group | None,
        stdin: socket.socket,
        stderr: int,
        role: str,
    ) -> None:
        bare = kind.name == "none"
        self._folder = (
            tempfile.TemporaryDirectory(prefix="parley-", ignore_cleanup_errors=True)
            if bare
            else None
        )
        settings = {"uid": kind.uid, "nested": kind.nested, "limits": asdict(limits), "role": role}
        settings["filters"] = {
            "program": make_filter("program").hex(),
            "judges": make_filter("judges").hex(),
        }
        settings["folder"] = self._folder.name if self._folder is not None else "/tmp"
        boot = json.dumps([SOURCES, settings]).encode()
        self.boot = len(boot).to_bytes(4, "big") + boot
        command = kind.command(limits)
        # Its environment is empty: bubblewrap is the first process inside, and others could read
        # what it was given.
        self._process = subprocess.Popen(
            command if group is None else group.wrap(command),
            stdin=stdin.fileno(),
            stdout=stdin.fileno(),
            stderr=stderr,
            env=kind.environment,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        """Until it is gone, which it is soon after nobody speaks to it any more."""
        try:
            self._process.wait(CLOSE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()


class First:
    """A sandbox that makes confined processes: forked by one warm first process, or each in a
    sandbox of its own."""

    def __init__(self, kind: Kind, limits: Limits, group: Group | None = None) -> None:
        self.kind, self.limits, self._group = kind, limits, group
        self._control: socket.socket | None = None
        self._outermost: OutermostProcess | None = None
        self._broken = False
        self._kills = group.kills() if group is not None else 0
        self._host_kills = host_kills()
        if kind.nested:
            try:
                self._warm_up()
            except OSError as wrong:
                raise SandboxError(f"the sandbox ({kind.name}) could not start: {wrong}") from None

    def _warm_up(self) -> None:
        with open(os.memfd_create("errors"), "rb+") as errors:  # no file: a disk may be full
            self._control, theirs = socket.socketpair()
            try:
                with theirs:
                    self._outermost = OutermostProcess(
                        self.kind, self.limits, self._group, theirs, errors.fileno(), ""
                    )
                self._control.settimeout(START)
                self._control.sendall(self._outermost.boot)
                if self._control.recv(5) != b"ready":
                    raise OSError("no answer")
            except SandboxError:
                self.close()
                raise
            except OSError as wrong:
                self.close()
                errors.seek(0)
                said = errors.read(4096).decode("utf-8", "replace").strip()
                raise SandboxError(
                    f"the sandbox ({self.kind.name}) did not start: {said or wrong}"
                ) from None

    def process(self, role: Role) -> Talk:
        """Start a confined process and wait until it is ready."""
        try:
            talk = self._start(role)
        except OSError as wrong:
            self._broken = True
            raise SandboxError(
                f"the sandbox ({self.kind.name}) could not start a process: {wrong}"
            ) from None
        try:
            if talk.receive(time.monotonic() + START) != b'"ready"':
                raise Gone
        except (Gone, Late):
            self._broken = True
            end = talk.finish(by_itself=True).end
            raise SandboxError(
                f"the sandbox ({self.kind.name}) did not start a process: {end or 'no answer'}"
            ) from None
        return talk

    def _start(self, role: Role) -> Talk:
        with ExitStack() as undo:
            ours, theirs, status, watcher = (
                undo.enter_context(each) for _ in range(2) for each in socket.socketpair()
            )
            alone = None
            if self._control is None:
                alone = OutermostProcess(
                    self.kind, self.limits, self._group, theirs, watcher.fileno(), role
                )
                with suppress(OSError):  # it is seen later that nobody took it
                    ours.settimeout(START)
                    ours.sendall(alone.boot)
            else:
                with suppress(OSError):
                    socket.send_fds(
                        self._control, [role[:1].encode()], [theirs.fileno(), watcher.fileno()]
                    )
            undo.pop_all()
            theirs.close()
            watcher.close()
            return Talk(ours, status, None if alone is None else alone.wait)

    @property
    def alive(self) -> bool:
        """Whether it can make processes, as far as it is known."""
        return not self._broken and (self._outermost is None or self._outermost.alive)

    def works(self) -> bool:
        """Whether it makes a process now."""
        try:
            self.process("program").finish()
        except SandboxError:
            return False
        return True

    def short_of_memory(self) -> bool:
        """Whether the kernel has ended anything here because all programs together held too
        much."""
        return self._group is not None and self._group.kills() > self._kills

    def machine_short_of_memory(self) -> bool:
        """Whether the kernel has ended anything on this machine for want of memory, or that cannot
        be known."""
        now = host_kills()
        return now is None or self._host_kills is None or now > self._host_kills

    def close(self) -> None:
        """End everything inside: the first process goes when nobody speaks to it any more."""
        if self._control is not None:
            self._control.close()
        if self._outermost is not None:
            self._outermost.wait()
