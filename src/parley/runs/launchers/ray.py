"""Workers as actors of Ray. Ray places each one on a node with free resources, and places it again
after its node or its process died."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parley.config.extras import require_extra
from parley.errors import UsageError
from parley.runs.launchers import DIE_WITH_PARENT, DRAIN, MOST_RESTARTS, LauncherState
from parley.runs.launchers.worker_folder import ENVIRONMENT, VARIABLE, create_worker_folder

OPTIONS = "PARLEY_RAY_OPTIONS"
NOT_PASSED_ON = ("PARLEY_STORE", VARIABLE, OPTIONS)
# Options of an actor that say what a worker needs.
RESOURCES = {"accelerator_type", "label_selector", "memory", "num_cpus", "num_gpus", "resources"}
ANSWER = 2.0  # seconds: a call to an actor may never return, even if Ray has restarted the actor
FORGET = 30.0  # then ask an actor again


class RayLauncher:
    """Holds a connection to a cluster, and one actor for each worker. Ray ends the actors if this
    process ends."""

    def __init__(self) -> None:
        require_extra("ray", "workers on Ray (--workers ray:N)")
        self._resources = read_resources()
        self._folder: Path | None = None
        self._actors: list[Any] = []
        self._asked: dict[int, tuple[float, Any]] = {}
        self._up: set[int] = set()
        self._over: dict[int, str] = {}  # the failure of an ended worker; empty if there was none

    def start(self, workers: int, words: Sequence[str], secrets: Mapping[str, str]) -> None:
        connect_to_cluster()
        # nodes have an environment of their own; `PG…` are the variables of PostgreSQL's library
        settings = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PARLEY_", "PG")) and name not in NOT_PASSED_ON
        }
        self._folder = create_worker_folder({**settings, **secrets})
        actor = define_actor().options(**self._resources)
        file = str(self._folder / ENVIRONMENT)
        self._actors = [
            actor.remote(list(words), file, sorted(secrets), os.getcwd()) for _ in range(workers)
        ]

    def poll(self) -> LauncherState:
        import ray

        now = time.monotonic()
        for number, actor in enumerate(self._actors):
            asked, _ = self._asked.get(number, (0.0, None))
            if number not in self._over and now - asked > FORGET:
                self._asked[number] = (now, actor.report.remote())
        calls = {call: number for number, (_, call) in self._asked.items()}
        answered = ray.wait(list(calls), num_returns=len(calls), timeout=ANSWER)[0] if calls else []
        self._up.clear()
        for call in answered:
            number = calls[call]
            del self._asked[number]
            try:
                code, lines = ray.get(call, timeout=ANSWER)
            except ray.exceptions.RayActorError as wrong:
                if wrong.actor_init_failed:  # else Ray starts it again
                    said = str(wrong).strip().splitlines()[-1]
                    self._over[number] = f"worker {number + 1} was not started by Ray: {said}"
                continue
            except ray.exceptions.RayError:  # the answer was lost with a node: ask again
                continue
            if code is None:
                self._up.add(number)
            elif code == 0:
                self._over[number] = ""
            else:
                self._over[number] = f"worker {number + 1} ended with code {code}\n{lines}".strip()
        waiting = len(self._actors) - len(self._over) - len(self._up)
        failed = (failure for _, failure in sorted(self._over.items()) if failure)
        return LauncherState(len(self._up), waiting, tuple(failed))

    def stop(self, patience: float = DRAIN) -> None:
        if self._folder is None:
            return
        import ray

        # the others are not placed: they would not answer
        stops = [self._actors[number].stop.remote(patience) for number in self._up]
        if stops and patience:
            ray.wait(stops, num_returns=len(stops), timeout=patience + ANSWER)
        for actor in self._actors:
            ray.kill(actor)
        ray.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self._actors, self._asked = None, [], {}


def read_resources() -> dict[str, Any]:
    """What a worker needs of its node, from PARLEY_RAY_OPTIONS; one CPU if it is not set."""
    wanted = (
        f"{OPTIONS} must be a JSON object with options of a Ray actor "
        f'({", ".join(sorted(RESOURCES))}), like {{"num_cpus": 2, "num_gpus": 1}}'
    )
    text = os.environ.get(OPTIONS) or "{}"
    try:
        found = json.loads(text)
    except ValueError:
        raise UsageError(f"{wanted}, not {text!r}") from None
    if not isinstance(found, dict) or not found.keys() <= RESOURCES:
        raise UsageError(f"{wanted}, not {text!r}")
    return {"num_cpus": 1, **found}


def connect_to_cluster() -> None:
    """Connect to the cluster of RAY_ADDRESS, or to the one that this machine belongs to. Parley
    starts none: Ray would listen on all network interfaces."""
    import ray

    address = os.environ.get("RAY_ADDRESS") or "auto"
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as wrong:
        said = str(wrong).strip().splitlines()[0]
        raise UsageError(
            f"no connection to a Ray cluster ({said}); run the command on a node of the cluster "
            "(`ray start` makes a machine one), or set RAY_ADDRESS=HOST:PORT"
        ) from None
    finally:
        if is_main:  # Ray replaces what this process does at SIGTERM
            signal.signal(signal.SIGTERM, before)


def define_actor() -> Any:
    """The class of the actors. Nodes get its code from Ray, so it uses only Python's library: a
    node without Parley then says that it has none."""
    import ray

    start, most_restarts = DIE_WITH_PARENT, MOST_RESTARTS

    class ParleyWorker:
        def __init__(self, words: list[str], file: str, secrets: list[str], folder: str) -> None:
            import sys
            import tempfile

            variables, self._note = dict(os.environ), ""
            try:
                with open(file, encoding="utf-8", errors="surrogateescape") as opened:
                    parts = opened.read().split("\0")
                for part in filter(None, parts):
                    name, _, value = part.partition("=")
                    variables[name] = value
            except OSError:
                if lacking := [name for name in secrets if name not in variables]:
                    self._note = (
                        f"this node cannot read {file}: set PARLEY_WORKER_FOLDER to a folder that "
                        f"all nodes share, or set {', '.join(lacking)} where you run `ray start`\n"
                    )
            before = [sys.executable, "-c", start, str(os.getpid())]
            self._command = [*before, "-m", "parley", "worker", *words]
            self._folder = folder if os.path.isdir(folder) else None
            self._variables, self._restarts = variables, 0
            self._output = tempfile.TemporaryFile()  # noqa: SIM115
            self._start()

        def _start(self) -> None:
            import subprocess

            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
            )

        def report(self) -> tuple[int | None, str]:
            """The exit code of the worker, None if it is running; and its last lines."""
            code = self._process.poll()
            if code is not None and code < 0 and self._restarts < most_restarts:
                self._restarts += 1
                self._start()
                code = None
            if not code:
                return code, ""
            self._output.seek(max(0, os.fstat(self._output.fileno()).st_size - 8192))
            lines = self._output.read().decode(errors="replace").strip().splitlines()
            return code, self._note + "\n".join(lines[-20:])

        def stop(self, patience: float) -> None:
            """Let the worker finish its calls; it is killed with this actor otherwise."""
            import subprocess

            self._process.terminate()
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()

    return ray.remote(max_restarts=-1, scheduling_strategy="SPREAD")(ParleyWorker)
