"""Workers as a job array of Slurm. Slurm starts a task again after its node failed; a task puts
itself back into the queue before its time limit (slurm_task.py); and a task that was killed is put
back by this launcher, as long as its command is open."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from parley.errors import UsageError
from parley.providers._secrets import SECRET
from parley.runs.launchers import DRAIN, MOST_RESTARTS, LauncherState
from parley.runs.launchers.slurm_task import code_file, log_file
from parley.runs.launchers.worker_folder import (
    ENVIRONMENT,
    create_worker_folder,
    read_last_lines,
)
from parley.store.address_forms import passwords_in

OPTIONS = "PARLEY_SLURM_OPTIONS"
PAUSE = 5.0  # seconds between two questions to the controller
TIMEOUT = 60.0
RUNNING = {"RUNNING", "COMPLETING", "STOPPED", "SUSPENDED"}
# A task that ended like this was killed, unless it has left the exit code of its worker.
KILLED = {"FAILED", "OUT_OF_MEMORY", "TIMEOUT"}
ENDED = KILLED | {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "NODE_FAIL", "PREEMPTED"}
PASSWORD_IN_ADDRESS = re.compile(r"://[^/@\s]*:[^/@\s]+@")
GONE = re.compile("invalid job id|already completing or completed", re.IGNORECASE)
# Lines of the script, so that variables like SBATCH_SIGNAL can replace them.
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=parley
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
exec {command}
"""


class SlurmLauncher:
    """Submits one job array, and asks the controller about it."""

    def __init__(self) -> None:
        if shutil.which("sbatch") is None:
            raise UsageError(
                "workers on Slurm need the command sbatch, which is not installed on this machine: "
                "run the command on a login node of the cluster"
            )
        self._folder = Path()
        self._job = ""
        self._states: dict[int, str] = {}
        self._restarts = 0
        self._asked = 0.0

    def start(self, workers: int, words: Sequence[str], secrets: Mapping[str, str]) -> None:
        hidden = {**find_secrets(), **secrets}
        passwords = passwords_in(secrets.get("PARLEY_STORE", ""))
        folder = self._folder = create_worker_folder(hidden)
        task = "parley.runs.launchers.slurm_task"
        command = shlex.join([sys.executable, "-m", task, str(folder), *words])
        script = folder / "job.sh"
        script.write_text(SCRIPT.format(command=command), encoding="utf-8")
        log = log_file(folder, "%a")
        try:
            options = shlex.split(os.environ.get(OPTIONS, ""))
            said = ask_slurm(
                *("sbatch", "--parsable", f"--array=1-{workers}", "--open-mode=append"),
                *(f"--output={log}", f"--error={log}", *options, str(script)),
                environment=environment_without(hidden, passwords),
            )
        except ValueError as wrong:  # a quotation mark without its partner
            self._remove_folder()
            raise UsageError(f"{OPTIONS} cannot be read: {wrong}") from None
        except SlurmError as wrong:
            self._remove_folder()
            raise UsageError(
                f"Slurm did not accept the job: {wrong}; choose a partition, an account or a time "
                f"limit with SBATCH_PARTITION, SBATCH_ACCOUNT and SBATCH_TIMELIMIT, and other "
                f"options of sbatch with {OPTIONS}"
            ) from None
        self._job = said.strip().partition(";")[0]
        self._states = dict.fromkeys(range(1, workers + 1), "PENDING")

    def poll(self) -> LauncherState:
        self._ask_controller()
        states = [state for state in self._states.values() if state not in ENDED]
        up = sum(state in RUNNING for state in states)
        return LauncherState(up, len(states) - up, tuple(self._find_failures()))

    def _find_failures(self) -> Iterator[str]:
        for task, state in self._states.items():
            if state in ENDED and (failure := self._describe_failure(task, state)):
                yield failure

    def stop(self, patience: float = DRAIN) -> None:
        """End the job. Slurm gives its tasks KillWait seconds, whatever the patience is."""
        if not self._job:
            return
        # Codes are read before: a worker that is cancelled may end with any code.
        failed = any(self._find_failures()) or any(map(self._read_code, self._states))
        try:
            ask_slurm("scancel", self._job)
        except SlurmError as wrong:
            if not GONE.search(str(wrong)):
                raise UsageError(
                    f"job {self._job} was not cancelled: {wrong}; run: scancel {self._job}"
                ) from None
        self._job = ""
        if failed:  # the output of the workers says why
            (self._folder / ENVIRONMENT).unlink(missing_ok=True)
        else:
            self._remove_folder()

    def _ask_controller(self) -> None:
        if not self._job or time.monotonic() - self._asked < PAUSE:
            return
        try:
            said = ask_slurm(
                *("squeue", "--noheader", "--array", "--states=all", f"--jobs={self._job}"),
                "--format=%K %T",
            )
        except SlurmError as wrong:
            if not GONE.search(str(wrong)):
                return  # the controller is away: what it said last still counts
            said = ""  # it forgets jobs that ended a while ago
        self._asked = time.monotonic()
        states = dict(line.split() for line in said.splitlines() if line.strip())
        for task, before in self._states.items():
            state = states.get(str(task)) or (before if before in ENDED else "COMPLETED")
            if state in KILLED and state != before and self._read_code(task) is None:
                state = self._start_again(task, state)
            self._states[task] = state

    def _start_again(self, task: int, state: str) -> str:
        """Put a task that was killed back into the queue; its new state."""
        if self._restarts == MOST_RESTARTS:
            return state
        self._restarts += 1
        try:
            ask_slurm("scontrol", "requeue", f"{self._job}_{task}")
        except SlurmError:  # the cluster does not allow it
            return state
        return "PENDING"

    def _read_code(self, task: int) -> int | None:
        """The exit code that a task has left; None if it was killed before, or still runs."""
        try:
            return int(code_file(self._folder, str(task)).read_text())
        except (OSError, ValueError):
            return None

    def _describe_failure(self, task: int, state: str) -> str:
        """Why a worker has ended; empty if it was done."""
        code = self._read_code(task)
        if code == 0 or (code is None and state == "COMPLETED"):
            return ""
        how = f"ended with code {code}" if code else f"was killed (state {state})"
        try:
            with log_file(self._folder, str(task)).open("rb") as file:
                lines = read_last_lines(file)
        except OSError:  # it was not started
            lines = ""
        return f"task {self._job}_{task} of Slurm {how}\n{lines}".strip()

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class SlurmError(Exception):
    """A command of Slurm failed; the message is what it said."""


def ask_slurm(*command: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a command of Slurm; what it printed."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{command[0]} did not answer within {TIMEOUT:.0f} s") from None
    except OSError as wrong:
        raise SlurmError(f"{command[0]}: {wrong.strerror}") from None
    if done.returncode:
        raise SlurmError(
            " ".join((done.stderr or done.stdout).split()) or f"code {done.returncode}"
        )
    return done.stdout


def find_secrets() -> dict[str, str]:
    """The variables of this process that look like secrets by their names, or contain an address
    with a password."""
    return {
        name: value
        for name, value in os.environ.items()
        if SECRET.search(name) or PASSWORD_IN_ADDRESS.search(value)
    }


def environment_without(secrets: Mapping[str, str], passwords: Sequence[str]) -> dict[str, str]:
    """The environment of this process for `sbatch`, which stores it on the controller's disk.
    PARLEY_STORE is left out: the workers get the address as a word, and its secrets in a file."""
    hidden = {value for value in (*secrets.values(), *passwords) if len(value) >= 6}
    return {
        name: value
        for name, value in os.environ.items()
        if name not in secrets
        and name not in ("PARLEY_STORE", "SBATCH_WAIT")
        and not any(secret in text for secret in hidden for text in (value, unquote(value)))
    }
