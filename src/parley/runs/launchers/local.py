"""Workers as processes on this machine. On Linux, they end with the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

from parley.runs.launchers import DIE_WITH_PARENT, DRAIN, MOST_RESTARTS, LauncherState
from parley.runs.launchers.worker_folder import read_last_lines

AT_ONCE = 3.0  # seconds in which a worker gives its matches back, without finishing its calls


class LocalLauncher:
    """Starts processes, and starts them again if a signal killed them."""

    def __init__(self) -> None:
        self._command: list[str] = []
        self._variables: dict[str, str] = {}
        self._workers: list[subprocess.Popen[bytes]] = []
        self._outputs: list[IO[bytes]] = []  # files without a name: nothing stays behind
        self._restarts = 0

    def start(self, workers: int, words: Sequence[str], secrets: Mapping[str, str]) -> None:
        before = ["-c", DIE_WITH_PARENT, str(os.getpid())] if sys.platform == "linux" else []
        self._command = [sys.executable, *before, "-m", "parley", "worker", *words]
        self._variables = {**os.environ, **secrets}
        for number in range(workers):
            self._outputs.append(tempfile.TemporaryFile())  # noqa: SIM115
            self._workers.append(self._start(number))

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=self._outputs[number],
            stderr=self._outputs[number],
            start_new_session=True,  # Ctrl-C in a terminal is for the command, not for workers
        )

    def poll(self) -> LauncherState:
        for number, worker in enumerate(self._workers):
            code = worker.poll()
            if code is not None and code < 0 and self._restarts < MOST_RESTARTS:
                self._restarts += 1
                self._workers[number] = self._start(number)
        codes = [worker.poll() for worker in self._workers]
        failed = tuple(
            f"worker {number + 1} ended with code {code}\n{read_last_lines(self._outputs[number])}"
            for number, code in enumerate(codes)
            if code
        )
        return LauncherState(codes.count(None), 0, failed)

    def stop(self, patience: float = DRAIN) -> None:
        left = [worker for worker in self._workers if worker.poll() is None]
        for worker in left:
            worker.send_signal(signal.SIGTERM)
            if not patience:
                worker.send_signal(signal.SIGINT)  # the second signal: leave at once
        deadline = time.monotonic() + (patience or AT_ONCE)
        for worker in left:
            try:
                worker.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        for output in self._outputs:
            output.close()
        self._workers, self._outputs = [], []
