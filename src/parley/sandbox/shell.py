"""A persistent shell in a throw-away Linux: what a model does there stays until the end, and
nowhere else."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from parley.errors import SandboxError, TaskError
from parley.sandbox import linux, seccomp
from parley.sandbox.cgroups import Group, make_limited_group
from parley.sandbox.inside.session import SETTLED
from parley.sandbox.inside.view import IDS, ROOM
from parley.sandbox.inside.wire import LARGEST
from parley.sandbox.kinds import (
    BOOT,
    FLAGS,
    REMEDY,
    SETTINGS,
    package_folders,
    parents,
    python,
    sources,
    system,
)
from parley.sandbox.limits import MB, Limits
from parley.sandbox.process import START
from parley.sandbox.talk import CLOSE

Language = Literal["bash", "python"]
SHELL = Limits(
    cpu=60,
    wall=30.0,
    memory=512 * MB,
    space=2048 * MB,
    file=32 * MB,
    disk=64 * MB,
    files=256,
    processes=128,
)
OUTPUT = 32_000  # bytes that are kept of what a command writes
LONGEST = 1 << 19  # bytes of a command
# bytes of a script, and of each of its arguments: what the kernel hands to a new program
LONGEST_SCRIPT = 120_000
GRACE = 30.0  # seconds in which the end of a command must be known; a loaded machine is slow
HOME = "/root"
PLACES = ("/", "/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var")  # and what lies in them
FOLDERS_OF_PROGRAMS = ("bin", "sbin", "lib", "lib32", "lib64")
MODULES = ("wire", "confine", "proc", "usage", "model_files", "view", "session", "keeper")
SOCKET = {"x86_64": 41, "aarch64": 198}
# what the kernel answers where it lacks a kind of socket: programs then do without
NO_SUCH_FAMILY = 0x50061


class Shell:
    """One shell with its view. Commands run one after the other; nothing is left of it when it is
    closed or its owner is gone.

    `home` is root's home. The shell, and every script, begins in `folder`, or at home.
    """

    def __init__(
        self, limits: Limits = SHELL, output: int = OUTPUT, home: str = HOME, folder: str = ""
    ) -> None:
        self.limits, self.output = limits, output
        self.home, self.folder = check_place(home, "home"), check_place(folder or home, "folder")
        # whether there are several users; otherwise everybody inside is one and the same
        self.users = os.getuid() == 0
        self.used = False  # whether a command has been run
        self.checked = False  # whether a check has been run
        self._group: Group | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> Self:
        ours, theirs = socket.socketpair()
        with tempfile.TemporaryFile() as errors:
            try:
                with theirs:
                    await asyncio.to_thread(self._launch, theirs.fileno(), errors.fileno())
                self._streams = await asyncio.open_connection(sock=ours)
                text = await asyncio.to_thread(self._boot)
                said = await self._exchange(text, START)
            except BaseException as wrong:
                ours.close()
                await self.close()
                if not isinstance(wrong, SandboxError):
                    raise
                errors.seek(0)
                why = errors.read(4096).decode("utf-8", "replace").strip() or wrong
                raise SandboxError(f"the shell did not start: {why}") from None
        if "unable" in said:
            await self.close()
            raise SandboxError(f"the shell did not start: {said['unable']}")
        return self

    def _launch(self, channel: int, errors: int) -> None:
        # what is written is there twice while it is copied for a check
        self._group = make_limited_group(self.limits.memory + 4 * self.limits.disk + 256 * MB)
        whole = command() if self._group is None else self._group.wrap(command())
        # Its environment is empty: others inside could read what it was given.
        self._process = subprocess.Popen(
            whole,
            stdin=channel,
            stdout=channel,
            stderr=errors,
            env=SETTINGS,
            start_new_session=True,
        )

    def _boot(self) -> bytes:
        settings = {
            "owner": private_range(Path("/proc/self/uid_map").read_text()) if self.users else 0,
            "programs": program_folders(), "packages": package_folders(),
            "files": linux.files(), "links": linux.links(), "sealed": linux.startup_folders(),
            "home": self.home, "folder": self.folder, "limits": asdict(self.limits),
            "filter": make_shell_filter().hex(), "most": self.output,
        }  # fmt: skip
        return json.dumps([sources(*MODULES), settings]).encode()

    async def run(self, command: str, timeout: float | None = None) -> dict[str, Any]:
        """Run a model's command. The result has its output and status, and whether the output was
        cut and the command timed out.

        `restarted` says why the shell was restarted, if it was: files and most background processes
        stay, variables do not.
        """
        if self.checked:
            raise TaskError(
                "a shell cannot run a command after a check: all of the model's processes have "
                "ended by then"
            )
        self.used = True
        if len(command.encode("utf-8", "replace")) > LONGEST:
            answer = {
                "output": f"bash: a command of more than {LONGEST} bytes was not run\n",
                "status": 126,
            }
            return {**answer, "cut": False, "timed_out": False, "restarted": ""}
        return await self._ask({"do": "run", "command": command}, timeout)

    async def prepare(
        self,
        script: str,
        *arguments: str,
        language: Language = "bash",
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Run a script of the task as root of the view, before the model gets access. Processes
        that it starts keep running."""
        if self.used or self.checked:
            raise TaskError(
                "a shell must be prepared before its first command, because processes of the "
                "model could interfere later"
            )
        return await self._run_script("prepare", script, arguments, language, timeout)

    async def check(
        self,
        script: str,
        *arguments: str,
        language: Language = "bash",
        live: bool = False,
        proc: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Run a script of the task on what the model has left. `output` is its standard output,
        `errors` its standard error.

        All processes of the model are ended first. The script runs in a new place with the
        programs of this machine and a copy of what the model has written, but without /proc, by
        which a link could lead to what the script itself was given. The first check decides with
        `proc` whether there is /proc after all. A `live` check runs among the processes and
        programs of the model instead. Both can be deceived.
        """
        self.checked = True
        where = {"live": live, "proc": proc}
        return await self._run_script("check", script, arguments, language, timeout, where)

    async def _run_script(
        self,
        do: str,
        script: str,
        arguments: tuple[str, ...],
        language: str,
        timeout: float | None,
        where: Mapping[str, bool] | None = None,
    ) -> dict[str, Any]:
        for text in (script, *arguments):
            if len(text.encode("utf-8", "replace")) > LONGEST_SCRIPT or "\0" in text:
                raise TaskError(
                    f"a script or an argument must have at most {LONGEST_SCRIPT} bytes and no zero "
                    f"byte: {text[:80]!r}"
                )
        if language not in ("bash", "python"):
            raise TaskError(f"the language of a script must be bash or python, not {language!r}")
        asked = {"do": do, "command": script, "arguments": arguments, "language": language}
        return await self._ask({**asked, **(where or {})}, timeout)

    async def _ask(self, asked: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:
        seconds = self.limits.wall if timeout is None else timeout
        async with self._turn:
            try:
                said = await self._exchange(
                    json.dumps({**asked, "timeout": seconds}).encode(),
                    seconds + SETTLED + GRACE,
                )
                if "unable" in said:
                    raise SandboxError(f"the shell failed: {said['unable']}")
                return said
            except BaseException:  # also if cancelled: the state inside is unknown
                await self.close()
                raise

    async def _exchange(self, text: bytes, seconds: float) -> dict[str, Any]:
        if self._streams is None:
            raise SandboxError("the shell is closed")
        reader, writer = self._streams
        try:
            async with asyncio.timeout(seconds):
                writer.write(len(text).to_bytes(4, "big") + text)
                await writer.drain()
                size = int.from_bytes(await reader.readexactly(4), "big")
                if size > LARGEST:
                    raise SandboxError("the shell returned a malformed answer")
                return dict(json.loads(await reader.readexactly(size)))
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as wrong:
            raise SandboxError(
                f"the connection to the shell was lost ({type(wrong).__name__})"
            ) from None

    async def close(self) -> None:
        """Stop everything inside: the keeper exits when its connection closes, and all other
        processes with it."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].transport.abort()
        process, self._process = self._process, None
        if process is not None:
            await asyncio.shield(asyncio.to_thread(wait_for_end, process))
        group, self._group = self._group, None
        if group is not None:
            await asyncio.shield(asyncio.to_thread(group.close))

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def replay(self, recorded: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> bool:
        """Repeat recorded requests in a new shell; returns whether all results are the same."""
        for asked, result in recorded:
            found = await self.do(asked)
            if any(found[key] != result[key] for key in ("output", "status", "timed_out")):
                return False
        return True

    async def do(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a request given as data: `do` (run, prepare or check), `command`, `timeout`,
        for scripts `arguments` and `language`, and for checks `live` and `proc`."""
        command, timeout = asked["command"], asked.get("timeout")
        if asked["do"] == "run":
            return await self.run(command, timeout)
        arguments, language = asked.get("arguments", ()), asked.get("language", "bash")
        if asked["do"] == "prepare":
            return await self.prepare(command, *arguments, language=language, timeout=timeout)
        where = {key: asked[key] for key in ("live", "proc") if key in asked}
        return await self.check(command, *arguments, language=language, timeout=timeout, **where)


def check_place(place: str, what: str) -> str:
    """Check a folder that is to be the home or working directory of a shell."""
    first = "/" + place.strip("/").partition("/")[0]
    if os.path.normpath(place) != place or not place.startswith("/") or first not in PLACES:
        raise TaskError(
            f"the {what} of a shell must be a folder in {', '.join(PLACES)}, not {place!r}"
        )
    return place


def wait_for_end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(CLOSE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def command() -> list[str]:
    """The bubblewrap command of a system in which the keeper inside makes views."""
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError(f"bubblewrap is not installed: {REMEDY}")
    parts = [
        found,
        "--unshare-pid",
        "--as-pid-1",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    parts += ["--hostname", "sandbox", "--new-session", "--clearenv", "--cap-add", "ALL"]
    if os.getuid() != 0:
        parts += ["--unshare-user", "--uid", "0", "--gid", "0"]
    for place in system():
        parts += [*parents(place), "--ro-bind", place, place]
    for name in FOLDERS_OF_PROGRAMS:
        if os.path.isdir(f"/{name}"):
            parts += ["--ro-bind", os.path.realpath(f"/{name}"), f"/{name}"]
    parts += [
        "--perms",
        "0755",
        "--dir",
        ROOM,
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--remount-ro",
        "/dev",
        "--chdir",
        "/",
    ]
    for name, value in SETTINGS.items():
        parts += ["--setenv", name, value]
    return [*parts, python(), *FLAGS, "-c", BOOT]


def program_folders() -> dict[str, str]:
    """Top-level folders of programs and libraries, with the folders that they are or lead to."""
    places = {name: f"/{name}" for name in FOLDERS_OF_PROGRAMS}
    return {name: os.path.realpath(place) for name, place in places.items() if os.path.isdir(place)}


def private_range(mapped: str) -> int:
    """The first of a random range of unused user IDs."""
    ranges = [
        (int(first), int(count))
        for first, _, count in (line.split() for line in mapped.splitlines())
    ]
    first, count = max(ranges, key=lambda each: each[1])
    low, high = first + max(IDS, min(count // 2, 1 << 30)), first + min(count, 1 << 31) - IDS
    if high < low:
        raise SandboxError(
            f"a shell needs {IDS} unused user IDs, but this machine has only {count}: run "
            "Parley as an ordinary user instead of root"
        )
    return random.SystemRandom().randint(low, high)


def make_shell_filter() -> bytes:
    """The system call filter of all sandboxes, except that creating a socket fails as unsupported
    instead of forbidden, because some tools try it."""
    if not (rest := seccomp.make_filter("shell")):
        return b""
    number = SOCKET[
        {"AMD64": "x86_64", "arm64": "aarch64"}.get(machine := os.uname().machine, machine)
    ]
    first = [seccomp.step(seccomp.LOAD, seccomp.NUMBER), seccomp.step(seccomp.EQUAL, number, 0, 1)]
    return b"".join([*first, seccomp.step(seccomp.RETURN, NO_SUCH_FAMILY), rest])
