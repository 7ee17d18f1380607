"""Workers as processes on this machine. They end with the process that started them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from parley.runs.launchers import DIE_WITH_PARENT, MOST_RESTARTS, LauncherState
from parley.runs.launchers.worker_folder import read_last_lines

DRAIN = 20.0  # seconds that workers get to finish their calls


class LocalLauncher:
    """Starts processes, and starts them again if a signal killed them."""

    def __init__(self) -> None:
        self._folder = Path()
        self._command: list[str] = []
        self._variables: dict[str, str] = {}
        self._workers: list[subprocess.Popen[bytes]] = []
        self._restarts = 0

    def start(self, workers: int, words: Sequence[str], secrets: Mapping[str, str]) -> None:
        before = ["-c", DIE_WITH_PARENT] if sys.platform == "linux" else []
        self._command = [sys.executable, *before, "-m", "parley", "worker", *words]
        self._variables = {**os.environ, **secrets}
        self._folder = Path(tempfile.mkdtemp(prefix="parley-workers-"))
        self._workers = [self._start(number) for number in range(workers)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with self._log(number).open("ab") as log:
            return subprocess.Popen(
                self._command,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a terminal is for the command, not for workers
            )

    def _log(self, number: int) -> Path:
        return self._folder / f"worker-{number + 1}.log"

    def poll(self) -> LauncherState:
        for number, worker in enumerate(self._workers):
            code = worker.poll()
            if code is not None and code < 0 and self._restarts < MOST_RESTARTS:
                self._restarts += 1
                self._workers[number] = self._start(number)
        codes = [worker.poll() for worker in self._workers]
        failed = tuple(
            f"worker {number + 1} ended with code {code}\n{read_last_lines(self._log(number))}"
            for number, code in enumerate(codes)
            if code
        )
        return LauncherState(codes.count(None), 0, failed)

    def stop(self) -> None:
        left = [worker for worker in self._workers if worker.poll() is None]
        for worker in left:
            worker.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + DRAIN
        for worker in left:
            try:
                worker.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._workers = []
        if self._folder.name:
            shutil.rmtree(self._folder, ignore_errors=True)
