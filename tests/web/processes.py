"""Runs and servers in processes of their own, for tests that watch them or kill them."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


@contextmanager
def start(*words, **more):
    """A `parley` command in a process, which is killed at the end."""
    command = [sys.executable, "-m", "parley", *map(str, words)]
    environment = {**os.environ, **more, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def step_through(folder, matches):
    """A run of public goods in its own process. `allow(number)` lets it make so many calls; a match
    takes two."""
    gate = Path(folder) / "gate"
    gate.write_text("0")
    models = [
        word for alias in ("ann", "bob") for word in ("-m", f"{alias}=python/gated_player:play")
    ]
    words = ["run", "public_goods", *models, "--repeats", matches, "--set", "rounds=1"]
    return start(*words, "--concurrency", 1, "--store", folder, "--name", "Stepped", GATE=str(gate))


def wait_for_run(folder, run):
    """Wait until a run has its file."""
    ends = time.monotonic() + 60
    while not [*Path(folder).glob("*.parley")]:
        assert run.poll() is None, run.stderr.read()
        assert time.monotonic() < ends, "the run has not begun"
        time.sleep(0.02)


def allow(folder, calls):
    """Let the run of a folder make this many calls in all."""
    new = Path(folder) / "gate.new"
    new.write_text(str(calls))
    new.replace(Path(folder) / "gate")


@contextmanager
def start_server(folder, port=0):
    """`parley view` in a process: the process and its address."""
    with start("view", "--store", folder, "--port", port) as process:
        line = process.stderr.readline()
        assert "http://" in line, line + process.stderr.read()
        yield process, line.split("shown at ")[1].split(" ")[0]
