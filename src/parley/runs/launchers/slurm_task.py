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

from parley.runs.launchers.worker_folder import ENVIRONMENT, read_variables


def log_file(folder: Path, task: str) -> Path:
    return folder / f"worker-{task}.log"


def code_file(folder: Path, task: str) -> Path:
    """Where a task leaves the exit code of its worker."""
    return folder / f"worker-{task}.code"


def serve_task(folder: Path, words: list[str]) -> int:
    """Run a worker until it ends; its exit code."""
    array, task = os.environ["SLURM_ARRAY_JOB_ID"], os.environ["SLURM_ARRAY_TASK_ID"]
    code_file(folder, task).unlink(missing_ok=True)  # of this task before it was queued again
    at_limit: list[int] = []
    worker = subprocess.Popen(
        [sys.executable, "-m", "parley", "worker", *words],
        env={**os.environ, **read_variables(folder / ENVIRONMENT)},
        stdin=subprocess.DEVNULL,
    )

    def pass_on(signum: int, _: object) -> None:
        if signum == signal.SIGUSR1:  # sent by Slurm because of --signal
            at_limit.append(signum)
        worker.send_signal(signal.SIGINT)

    for signum in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, pass_on)
    code = worker.wait()
    if at_limit:
        requeue(f"{array}_{task}")
        return 0
    code = code if code >= 0 else 128 - code
    with suppress(OSError):  # the launcher has removed the folder: nobody reads it
        code_file(folder, task).write_text(str(code))
    return code


def requeue(job: str) -> None:
    print(f"the time limit of job {job} is near: back into the queue", file=sys.stderr, flush=True)
    done = subprocess.run(["scontrol", "requeue", job], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"Slurm did not queue it again: {done.stderr.strip()}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(serve_task(Path(sys.argv[1]), sys.argv[2:]))
