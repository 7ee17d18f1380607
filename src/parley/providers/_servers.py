"""Servers of local models: finds the one that runs already, or starts one and ends it."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPException
from itertools import zip_longest
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener
from urllib.request import Request as HttpRequest

import orjson

from parley.activity import report_activity
from parley.errors import Refused
from parley.match.protocol import DeviceSetup, DeviceUse, Reply, Request
from parley.providers import _server_keeper as keeper
from parley.providers._checkpoints import (
    break_special_marks,
    describe_error,
    download_checkpoint,
    find_checkpoint,
    find_special_marks,
    name_checkpoint,
)
from parley.providers._secrets import SECRET, keep_secret, redact
from parley.rules.pool import Content, Turn, text_of
from parley.tables import format_duration, make_visible, shorten

if TYPE_CHECKING:
    from parley.providers._served_model import ServedModel

HOST = "127.0.0.1"
LOOK = 0.5  # seconds between two looks at a server that loads
PATIENCE = 10.0  # seconds that a server gets to end by itself
ANSWER = 2.0  # seconds for the list of models
PORTS = 3  # tried, if another program takes the one that was free
TAIL, LINES = 16_384, 3  # of the log: bytes that are read, and lines in an error
ERROR = re.compile(r"\b[A-Z]\w*(Error|Exception): ")
IN_USE = re.compile(r"address already in use|EADDRINUSE|port \d+ is (already )?in use", re.I)
# how many GPUs a server uses: the options of vLLM and SGLang, which are multiplied
PARALLEL = re.compile(r"--?(tp|pp|dp)(-size)?|--(tensor|pipeline|data)-parallel-size")


class ServerPlace(NamedTuple):
    """Where a server is started: what its command line says."""

    folder: Path  # of the checkpoint
    port: int
    key: str
    private: Path  # a folder that only this user can read


class LocalServer:
    """A server that this process has found or started; all aliases of the same model share it."""

    SHARED: ClassVar[dict[Any, LocalServer]] = {}
    LOCK: ClassVar[Lock] = Lock()
    # one server after the other: engines measure how much memory a GPU has left
    STARTING: ClassVar[Lock] = Lock()

    @classmethod
    def shared(cls, model: ServedModel, location: str) -> LocalServer:
        """The server of a model; found or started if it is not in use yet."""
        key = (model.program, model.name, model.revision, model.server_args)
        with cls.LOCK:
            found = cls.SHARED.get(key)
            if found is None or (found.ready.done() and found.fault):
                found = cls.SHARED[key] = cls(key, model, location)
            found.users += 1
            return found

    def __init__(self, key: Any, model: ServedModel, location: str) -> None:
        self.shared_key, self.model, self.users = key, model, 0
        self.base, self.key, self.location = model._base, secrets.token_hex(24), location
        self.log, self.is_kept = Path(), False
        self.ready: Future[None] = Future()  # it answers, or there is a fault
        self.fault = ""
        self.notices: list[str] = []
        self.was_started = False
        self.served = ""  # the checkpoint, as results name it
        self.marks: list[str] = []  # special tokens, the longest first
        self.setup = DeviceSetup("CPU", "cpu", model.program)
        self.gpus = 1
        self._calls = set[asyncio.Task[Reply]]()
        self._counted = 0.0  # up to when its time was given to replies
        self._shared = 0.0  # seconds that a call would have got that waited all the time
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = Event()
        self._thread = Thread(target=self._work, name=model.label, daemon=True)
        self._thread.start()

    async def answer(self, reply: Coroutine[Any, Any, Reply]) -> Reply:
        """The reply of a call, which ends at once if the server does. The time since the last reply
        is shared by all calls that wait, so that all of the server's time goes to its replies."""
        asked, this, began = asyncio.ensure_future(reply), asyncio.current_task(), self._shared
        self._calls.add(asked)
        if self.fault:
            asked.cancel()
        try:
            answered = await asked
            now = time.monotonic()
            self._shared += (now - self._counted) / len(self._calls)
            self._counted = now
        except asyncio.CancelledError:
            if this is None or not this.cancelling():  # it was not the caller who gave up
                self.check()
            raise
        finally:
            self._calls.discard(asked)
        answered.device = DeviceUse(self.setup, (self._shared - began) * self.gpus)
        answered.model_served = self.served
        return answered

    def check(self) -> None:
        """Raise an error if the server could not be started, or has ended."""
        if self.fault:
            raise Refused(f"{self.model.label}: {self.fault}")

    def without_marks(self, request: Request) -> Request:
        """A request in which nobody can end a turn or speak for another role."""
        if not any(mark in text_of(turn.content) for turn in request.turns for mark in self.marks):
            return request
        return replace(request, turns=[break_marks(turn, self.marks) for turn in request.turns])

    def leave(self) -> None:
        """Release one use; the last user ends the server."""
        with self.LOCK:
            self.users -= 1
            if self.users:
                return
            if self.SHARED.get(self.shared_key) is self:
                del self.SHARED[self.shared_key]
        self._closing.set()
        # a download cannot be interrupted
        self._thread.join(3 * PATIENCE if self._process is not None else LOOK)

    def _work(self) -> None:
        """Find or start the server, and watch it until it ends or is not needed any more."""
        try:
            if not self._is_at_usual_address():
                with self.STARTING:
                    if not self._closing.is_set():
                        self._start()
        except Exception as wrong:
            self.fault = redact(str(wrong)) if type(wrong) is ValueError else describe_error(wrong)
        finally:
            report_activity("")
            self.ready.set_result(None)
        while self._process is not None and not self._closing.wait(LOOK):
            if self._process.poll() is not None and not self.fault:
                self.fault = self._describe_end("while it was in use")
                for call in tuple(self._calls):
                    with suppress(RuntimeError):  # its loop has ended
                        call.get_loop().call_soon_threadsafe(call.cancel)
        self._end()

    def _is_at_usual_address(self) -> bool:
        """Whether a server at the usual address serves the model."""
        model = self.model
        try:
            served = list_models(self.base, model.usual_key())
        except PermissionError as wrong:
            self.notices.append(f"{wrong}, so Parley starts another one")
            return False
        if model.name not in served:
            if served:
                self.notices.append(
                    f"the server at {self.base} does not serve {model.name} (it serves "
                    f"{shorten(', '.join(served), 100)}), so Parley starts another one"
                )
            return False
        given = [f"`{name}`" for name in ("server_args", "revision") if getattr(model, name)]
        ignored = f" with options of its own, without your {' and '.join(given)}" if given else ""
        self.notices.append(f"{model.label} is served at {self.base}{ignored}")
        return True

    def _start(self) -> None:
        """Start the server and wait until it answers."""
        model, began = self.model, time.monotonic()
        program = find_program(model.program)
        if program is None:
            raise ValueError(describe_missing(model.program, self.base))
        folder = find_checkpoint(model.name, model.revision, model.download)
        if folder is None:
            report_activity(f"downloading {model.name}")
            folder = download_checkpoint(model.name, model.revision)
        self.served, self.marks = name_checkpoint(model.name, folder), find_special_marks(folder)
        self._describe_device()
        self.log, self.is_kept = log_file(
            self.location, model.label, [each.log for each in list(self.SHARED.values())]
        )
        keep_secret(self.key)
        for left in reversed(range(PORTS)):
            if self._closing.is_set():
                return
            port = find_free_port()
            self._launch(program, folder, port)
            try:
                if self._wait_until_ready(port):
                    break
            except PermissionError:  # another program has taken the port
                if not left:
                    raise
                self._end_process()
                continue
            if self._closing.is_set():
                return
            if not left or not IN_USE.search(self._read_log()):
                raise ValueError(self._describe_end("while it was loading"))
        self.was_started = True
        self.notices.append(
            f"{model.label} runs on {self.setup.device}: Parley started {model.program} in "
            f"{format_duration(time.monotonic() - began)}"
            + (f" (log: {self.log})" if self.is_kept else "")
        )

    def _describe_device(self) -> None:
        """Find out on what the server will run, and warn if it is not alone there."""
        names = list_gpus()
        self.gpus = count_gpus(self.model._words) if names else 1
        if not names:
            return
        device = names[0] if self.gpus == 1 else f"{self.gpus} × {names[0]}"
        self.setup = DeviceSetup(device, "gpu", self.model.program)
        others = [each.model.label for each in list(self.SHARED.values()) if each.was_started]
        if others:
            self.notices.append(
                f"{self.model.label} and {', '.join(others)} share the memory of the GPUs: if it "
                "is not enough, give each its part, such as -M "
                'ALIAS.server_args="--gpu-memory-utilization 0.45" for vLLM'
            )

    def _launch(self, program: str, folder: Path, port: int) -> None:
        private = Path(tempfile.mkdtemp(prefix="parley-"))  # the keeper removes it
        place = ServerPlace(folder, port, self.key, private)
        words = [program, *self.model.command_words(place), *self.model._words]
        self._counted = time.monotonic()
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", keeper.__file__),
                    *(str(os.getpid()), str(PATIENCE), str(private), *words),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**child_environment(), **self.model.server_variables(place)},
                start_new_session=True,  # Ctrl-C is for Parley, which ends it
            )
        assert self._process.stdin is not None
        self._process.stdin.write(self.key.encode() + b"\n")
        self._process.stdin.close()

    def _wait_until_ready(self, port: int) -> bool:
        """Whether the server answers: wait until it does, ends, or is not needed any more."""
        base, began = f"http://{HOST}:{port}/v1", time.monotonic()
        assert self._process is not None
        while self._process.poll() is None and not self._closing.wait(LOOK):
            if self.model.name in list_models(base, self.key):
                self.base = base
                return True
            taken = format_duration(time.monotonic() - began)
            last = "".join(f": {shorten(line, 160)}" for line in self._read_lines()[-1:])
            report_activity(f"{self.model.label} is loading ({taken}){last}")
        return False

    def _end(self) -> None:
        self._end_process()
        if self.log.name and not self.is_kept:
            self.log.unlink(missing_ok=True)

    def _end_process(self) -> None:
        if self._process is not None and self._process.poll() is None:
            report_activity(f"ending {self.model.program}")
            self._process.terminate()
            self._process.wait()
            report_activity("")

    def _describe_end(self, when: str) -> str:
        """How the server ended, with the last lines that it printed, after the first one that names
        an error: engines clean up noisily."""
        assert self._process is not None
        code = self._process.returncode
        # as a shell counts signals
        how = f"by signal {code - 128}" if code > 128 else f"with exit code {code}"
        lines = self._read_lines()
        last, errors = lines[-LINES:], [line for line in lines if ERROR.search(line)]
        shown = [*errors[:1], *last] if errors and errors[0] not in last else last
        said = f"; it printed: {' / '.join(shorten(each, 300) for each in shown)}" if shown else ""
        kept = f" (log: {self.log})" if self.is_kept else ""
        return f"{self.model.program} ended {when}, {how}{said}{kept}"

    def _read_lines(self) -> list[str]:
        lines = re.split(r"[\r\n]+", redact(self._read_log()))
        return [make_visible(line.strip()) for line in lines if line.strip()]

    def _read_log(self) -> str:
        """The end of what this server has printed; the log may be of several sessions."""
        with suppress(OSError), self.log.open("rb") as log:
            log.seek(max(self._log_start, self.log.stat().st_size - TAIL))
            return log.read().decode("utf-8", "replace")
        return ""


def log_file(location: str, label: str, used: Collection[Path]) -> tuple[Path, bool]:
    """The log of a server, and whether it is kept: beside the file of the run. Other servers write
    to those that are `used`."""
    name = re.sub(r"[^\w.+-]+", "-", re.sub(r"\W*/\W*", "-", label))[:80]
    if not location or "://" in location:
        handle, path = tempfile.mkstemp(prefix=f"parley-{name}-", suffix=".log")
        os.close(handle)
        return Path(path), bool(location)
    run, number = Path(location), 1
    log = run.with_name(f"{run.stem}.{name}.log")
    while log in used:
        number += 1
        log = run.with_name(f"{run.stem}.{name}-{number}.log")
    return log, True


def find_program(name: str) -> str | None:
    """The program of a package: of this environment, or on the PATH."""
    here = str(Path(sys.executable).parent)
    return shutil.which(name, path=os.pathsep.join([here, os.environ.get("PATH", "")]))


def describe_missing(program: str, base: str) -> str:
    """What to do without a server and without the program."""
    return (
        f"no server at {base} serves the model, and {program} is not installed: pip install "
        f"{program}, or set -M ALIAS.base_url=URL"
    )


def find_free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


class NoRedirects(HTTPRedirectHandler):
    """Follows no redirect, which would carry the key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def list_models(base: str, key: str | None) -> list[str]:
    """The models that a server on this machine lists; none if it does not answer. Raises
    PermissionError if it does not accept the key."""
    # threads without an event loop ask, so this is urllib and not aiohttp
    asked = HttpRequest(f"{base.rstrip('/')}/models")
    if key:
        asked.add_header("Authorization", f"Bearer {key}")
    try:
        with build_opener(ProxyHandler({}), NoRedirects).open(asked, timeout=ANSWER) as answer:
            found = orjson.loads(answer.read(2**20))["data"]
        return [str(each["id"]) for each in found]
    except HTTPError as wrong:
        if wrong.code in (401, 403):
            raise PermissionError(
                f"the server at {base} does not accept the key (HTTP {wrong.code})"
            ) from None
        return []
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return []


def child_environment() -> dict[str, str]:
    """The environment of a server: without keys, and without the network of model hubs."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not SECRET.search(name) and redact(value) == value
    }
    return {**kept, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}


def list_gpus() -> list[str]:
    """The names of the GPUs of this machine."""
    with suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        return [line.strip() for line in found.stdout.splitlines() if line.strip()]
    return ["AMD GPU"] if Path("/dev/kfd").exists() else []


def count_gpus(words: Sequence[str]) -> int:
    """How many GPUs a server with these words uses."""
    gpus = 1
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        name, _, value = word.partition("=")
        if PARALLEL.fullmatch(name) and (value or following).isdecimal():
            gpus *= max(1, int(value or following))
    return gpus


def break_marks(turn: Turn, marks: Sequence[str]) -> Turn:
    """A turn without special tokens in its text."""
    content: Content
    if isinstance(turn.content, str):
        content = break_special_marks(turn.content, marks)
    else:
        content = tuple(
            replace(part, text=break_special_marks(part.text, marks)) for part in turn.content
        )
    return Turn(turn.role, content, turn.provider_state)
