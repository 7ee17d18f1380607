"""The first process of a sandbox, seen from outside, and the confined processes that it makes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Literal, Self

from parley.errors import SandboxError
from parley.sandbox.cgroups import Group
from parley.sandbox.inside.wire import LARGEST
from parley.sandbox.kinds import Kind
from parley.sandbox.limits import Limits
from parley.sandbox.seccomp import filtering

Role = Literal["program", "judge"]
START = 30.0  # seconds for a sandbox to stand; a loaded machine is slow
CLOSE = 10.0  # seconds for one to be gone
OWN_END = 2.0  # seconds for a watcher to see that a process has ended
MODULES = ("wire", "confine", "program", "judge", "zygote")
ABOVE = ("parley", "parley.sandbox", "parley.sandbox.inside")


class Gone(Exception):
    """A confined process has ended before it answered."""


class Late(Exception):
    """A confined process has not answered in time."""


@dataclass(frozen=True)
class End:
    """How a confined process ended, as its watcher saw it."""

    end: str
    cpu: float
    peak: int


class Frames:
    """Frames over a socket, each within a time."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.received = 0  # bytes

    def send(self, frame: bytes, ends: float) -> None:
        try:
            self.channel.settimeout(max(0.01, ends - time.monotonic()))
            self.channel.sendall(len(frame).to_bytes(4, "big") + frame)
        except TimeoutError:
            raise Late from None
        except OSError:
            raise Gone from None

    def receive(self, ends: float) -> bytes:
        size = int.from_bytes(self._exactly(4, ends), "big")
        if size > LARGEST:
            raise Gone  # it does not speak our language any more
        self.received += size
        return self._exactly(size, ends)

    def _exactly(self, size: int, ends: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                self.channel.settimeout(max(0.01, ends - time.monotonic()))
                part = self.channel.recv(size - len(parts))
            except TimeoutError:
                raise Late from None
            except OSError:
                part = b""
            if not part:
                raise Gone
            parts += part
        return bytes(parts)


class Leash:
    """What is under way for one trial: when it is pulled, nobody waits any more, and all of it ends soon."""

    def __init__(self) -> None:
        self._held: list[Frames] = []
        self.pulled = False
        self._lock = threading.Lock()

    def hold(self, *several: Frames) -> None:
        with self._lock:
            self._held = list(several)
            pulled = self.pulled
        if pulled:
            self.pull()

    def pull(self) -> None:
        with self._lock:
            self.pulled = True
            for frames in self._held:
                with suppress(OSError):  # ended already
                    frames.channel.shutdown(socket.SHUT_RDWR)


class Talk(Frames):
    """Frames to and from one confined process, and word of how it ended."""

    def __init__(self, channel: socket.socket, status: socket.socket, alone: Launched | None) -> None:
        super().__init__(channel)
        self._status, self._alone = status, alone  # `alone`: the sandbox that holds nothing but this process
        self._end: End | None = None
        self._ending = threading.Lock()  # those who share a judge may all see that it is gone

    def ended(self, by_itself: bool = False) -> End:
        """End it if it lives, and say how it went; when this returns nothing of it is left.

        One that seems to have ended by itself is given a moment to be found so.
        """
        with self._ending:
            if self._end is None:
                said = self._heard(OWN_END) if by_itself else b""
                self.channel.close()
                if not said:
                    with suppress(OSError):
                        self._status.shutdown(socket.SHUT_WR)
                    said = self._heard(CLOSE)
                self._status.close()
                if self._alone is not None:
                    self._alone.wait()
                self._end = end_in(said)
            return self._end

    def _heard(self, seconds: float) -> bytes:
        """What the watcher says before it goes."""
        said = b""
        with suppress(OSError):
            self._status.settimeout(seconds)
            while part := self._status.recv(4096):
                said += part
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended()


class Launched:
    """A started command: the outermost process of a sandbox."""

    def __init__(self, kind: Kind, limits: Limits, group: Group | None, stdin: socket.socket, stderr: int, role: str) -> None:
        bare = kind.name == "none"
        self._folder = tempfile.TemporaryDirectory(prefix="parley-", ignore_cleanup_errors=True) if bare else None
        settings = {"uid": kind.uid, "nested": kind.nested, "filter": filtering().hex(), "limits": asdict(limits), "role": role}
        settings["folder"] = self._folder.name if self._folder is not None else "/tmp"
        boot = json.dumps([SOURCES, settings]).encode()
        self.boot = len(boot).to_bytes(4, "big") + boot
        command = kind.command(limits)
        # Its environment is empty: bubblewrap is the first process inside, and others could read what it was given.
        self._process = subprocess.Popen(
            command if group is None else group.around(command),
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
    """A sandbox that makes confined processes: forked by one warm first process, or each in a sandbox of its own."""

    def __init__(self, kind: Kind, limits: Limits, group: Group | None = None) -> None:
        self.kind, self.limits, self._group = kind, limits, group
        self._control: socket.socket | None = None
        self._launched: Launched | None = None
        self._broken = False
        self._kills = group.kills() if group is not None else 0
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
                    self._launched = Launched(self.kind, self.limits, self._group, theirs, errors.fileno(), "")
                self._control.settimeout(START)
                self._control.sendall(self._launched.boot)
                if self._control.recv(5) != b"ready":
                    raise OSError("it said nothing")
            except SandboxError:
                self.close()
                raise
            except OSError as wrong:
                self.close()
                errors.seek(0)
                said = errors.read(4096).decode("utf-8", "replace").strip()
                raise SandboxError(f"the sandbox ({self.kind.name}) did not start: {said or wrong}") from None

    def process(self, role: Role) -> Talk:
        """A confined process, ready to be spoken to."""
        try:
            talk = self._started(role)
        except OSError as wrong:
            self._broken = True
            raise SandboxError(f"the sandbox ({self.kind.name}) could not start a process: {wrong}") from None
        try:
            if talk.receive(time.monotonic() + START) != b'"ready"':
                raise Gone
        except (Gone, Late):
            self._broken = True
            end = talk.ended(by_itself=True).end
            raise SandboxError(f"the sandbox ({self.kind.name}) did not start a process: {end or 'no answer'}") from None
        return talk

    def _started(self, role: Role) -> Talk:
        with ExitStack() as undo:
            ours, theirs, status, watcher = (undo.enter_context(each) for _ in range(2) for each in socket.socketpair())
            alone = None
            if self._control is None:
                alone = Launched(self.kind, self.limits, self._group, theirs, watcher.fileno(), role)
                with suppress(OSError):  # it is seen later that nobody took it
                    ours.settimeout(START)
                    ours.sendall(alone.boot)
            else:
                with suppress(OSError):
                    socket.send_fds(self._control, [role[:1].encode()], [theirs.fileno(), watcher.fileno()])
            undo.pop_all()
            theirs.close()
            watcher.close()
            return Talk(ours, status, alone)

    @property
    def alive(self) -> bool:
        """Whether it can make processes, as far as it is known."""
        return not self._broken and (self._launched is None or self._launched.alive)

    def works(self) -> bool:
        """Whether it makes a process now."""
        try:
            self.process("program").ended()
        except SandboxError:
            return False
        return True

    def short_of_memory(self) -> bool:
        """Whether the kernel has ended anything here because all programs together held too much."""
        return self._group is not None and self._group.kills() > self._kills

    def close(self) -> None:
        """End everything inside: the first process goes when nobody speaks to it any more."""
        if self._control is not None:
            self._control.close()
        if self._launched is not None:
            self._launched.wait()


def end_in(said: bytes) -> End:
    """What a watcher said of a process that has ended; if it was no watcher that spoke, nothing is known."""
    try:
        return End(**json.loads(said[: said.index(b"}") + 1]))
    except (ValueError, TypeError):
        return End(f"unable: {said.decode('utf-8', 'replace').strip()[-500:] or 'no word'}", 0.0, 0)


def sources() -> list[tuple[str, str]]:
    """What is sent inside: the texts of our own modules, in the order in which they need each other."""
    inside = resources.files("parley.sandbox.inside")
    texts = [(f"parley.sandbox.inside.{name}", (inside / f"{name}.py").read_text()) for name in MODULES]
    return [*((name, "") for name in ABOVE), *texts]


SOURCES = sources()
