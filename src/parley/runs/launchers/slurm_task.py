"""What one task of the job array runs on its node: a worker, with the secrets of its folder. If the
time limit of the job is near, the worker finishes its calls and the task goes back into the
queue."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from parley.runs.launchers import MOST_RESTARTS
from parley.runs.launchers.worker_folder import ENVIRONMENT, read_variables


def log_file(folder: Path, task: str) -> Path:
    return folder / f"worker-{task}.log"


def code_file(folder: Path, task: str) -> Path:
    """Where a task leaves the exit code of its worker."""
    return folder / f"worker-{task}.code"


class SlurmTask:
    """Runs a worker until it ends, and passes signals on to it."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._command = [sys.executable, "-m", "parley", "worker", *words]
        self._environment = {**os.environ, **read_variables(folder / ENVIRONMENT)}
        self._worker = self._start_worker()
        self._is_at_limit = self._is_leaving = False

    def _start_worker(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, env=self._environment, stdin=subprocess.DEVNULL)

    def run(self) -> int | None:
        """The exit code of the worker; None if it left because of the time limit."""
        for signum in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._pass_on)
        restarts = 0
        while (code := self._worker.wait()) < 0 and not self._is_leaving:
            if restarts == MOST_RESTARTS:
                break
            restarts += 1
            self._worker = self._start_worker()
        if self._is_at_limit:
            return None
        return code if code >= 0 else 128 - code

    def _pass_on(self, signum: int, _: object) -> None:
        self._is_leaving = True
        self._is_at_limit |= signum == signal.SIGUSR1  # sent by Slurm because of --signal
        self._worker.send_signal(signal.SIGINT)


def serve_task(folder: Path, words: list[str]) -> int:
    """Run a worker, and leave its exit code in the folder."""
    array, task = os.environ["SLURM_ARRAY_JOB_ID"], os.environ["SLURM_ARRAY_TASK_ID"]
    code_file(folder, task).unlink(missing_ok=True)  # of this task before it was queued again
    code = SlurmTask(folder, words).run()
    if code is None:
        if requeue(f"{array}_{task}"):
            return 0
        code = 1
    with suppress(OSError):  # the launcher has removed the folder: nobody reads it
        code_file(folder, task).write_text(str(code))
    return code


def requeue(job: str) -> bool:
    """Put a job back into the queue. Returns whether Slurm has done it."""
    print(f"the time limit of job {job} is near: back into the queue", file=sys.stderr, flush=True)
    done = subprocess.run(["scontrol", "requeue", job], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"Slurm did not queue it again: {done.stderr.strip()}", file=sys.stderr)
    return not done.returncode


if __name__ == "__main__":
    sys.exit(serve_task(Path(sys.argv[1]), sys.argv[2:]))
