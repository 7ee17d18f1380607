"""Workers as processes on this machine: what becomes of them if one of them, or the command, is
killed or interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from parley.runs.launchers import DIE_WITH_PARENT, LauncherState, local
from parley.store import open_store, read_run
from tests.cli.test_cli import parley as call_command
from tests.endpoint import endpoint
from tests.runs.launched import (
    SECRETS,
    command_lines,
    contains_secret,
    find_newest,
    read_workers,
    wait_until,
)

MODELS = [word for name in "abc" for word in ("-m", f"{name}=openai-compatible/mock")]
# Starts workers and waits, as `parley run` does.
DRIVER = """
import time
from parley.runs.launchers.local import LocalLauncher

launcher = LocalLauncher()
launcher.start(2, ["run"], {})
while True:
    launcher.poll()
    time.sleep(0.1)
"""


@pytest.fixture
def launcher(stand_in, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(stand_in))
    monkeypatch.setenv("STAND_IN", str(stand_in))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(local.tempfile, "tempdir", None)
    launcher = local.LocalLauncher()
    yield launcher
    launcher.stop()


def test_workers_get_words_and_secrets_and_leave_nothing_behind(launcher, stand_in, tmp_path):
    words = ["--store", "postgresql://me@host/data base", "run 'a' $b"]
    launcher.start(2, words, SECRETS)
    workers = wait_until(lambda: len(found := read_workers(stand_in)) == 2 and found)
    for each in workers:
        assert each["words"] == ["worker", *words]
        assert {name: each["told"][name] for name in SECRETS} == SECRETS
    assert launcher.poll() == LauncherState(up=2, waiting=0)
    assert not contains_secret(command_lines())
    launcher.stop()
    assert len(list(stand_in.glob("*.drained"))) == 2
    assert launcher.poll() == LauncherState(up=0, waiting=0)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_killed_worker_is_started_again_but_not_for_ever(launcher, stand_in, monkeypatch):
    monkeypatch.setattr(local, "MOST_RESTARTS", 2)
    launcher.start(2, ["run"], {})
    for already in (2, 3):
        wait_until(lambda wanted=already: len(read_workers(stand_in)) == wanted)
        os.kill(find_newest(stand_in), signal.SIGKILL)
        wait_until(
            lambda wanted=already: launcher.poll() and len(read_workers(stand_in)) == wanted + 1
        )
    os.kill(find_newest(stand_in), signal.SIGKILL)
    state = wait_until(lambda: (state := launcher.poll()).failed and state)
    assert (state.up, state.waiting) == (1, 0)
    assert state.failed[0].splitlines()[0].endswith("ended with code -9")


def test_a_worker_that_fails_is_not_started_again(launcher, stand_in):
    launcher.start(2, ["fail"], {})
    state = wait_until(lambda: len((state := launcher.poll()).failed) == 2 and state)
    assert (state.up, state.waiting) == (0, 0)
    for number, failure in enumerate(state.failed, 1):
        assert failure.splitlines() == [
            f"worker {number} ended with code 1",
            "the key of openai is missing",
        ]
    assert launcher.poll() == state
    assert len(read_workers(stand_in)) == 2


def test_a_command_whose_workers_all_fail_stops_and_says_why_once(
    launcher, stand_in, postgres_url, tmp_path, monkeypatch
):
    monkeypatch.setattr(local.LocalLauncher, "start", fail_at_start(local.LocalLauncher.start))
    words = ["run", "public_goods", "-m", "bot/random", "-m", "bot/altruist", "--workers", "2"]
    done = call_command(*words, "--store", postgres_url, cwd=tmp_path, code=3)
    for number in (1, 2):
        assert done.err.count(f"worker {number} ended with code 1\nthe key of openai is") == 1
    assert "stopped (2 workers failed, for example: the key of openai is missing)" in done.err
    assert "--workers 2" in done.err  # in the command that resumes
    with read_run(open_store(postgres_url).find("last")) as reader:
        assert (reader.info.state, reader.info.status) == ("stopped", "interrupted")


def fail_at_start(start):
    return lambda self, workers, words, secrets: start(self, workers, [*words, "fail"], secrets)


def test_workers_end_with_the_command_that_started_them(launcher, stand_in, tmp_path):
    with subprocess.Popen([sys.executable, "-c", DRIVER]) as driver:
        wait_until(lambda: len(read_workers(stand_in)) == 2)
        os.kill(read_workers(stand_in)[0]["pid"], signal.SIGKILL)
        wait_until(lambda: len(read_workers(stand_in)) == 3)  # one that was started again, too
        driver.kill()
    wait_until(lambda: len(list(stand_in.glob("*.drained"))) == 2)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_worker_whose_command_is_gone_already_does_not_start():
    command = [sys.executable, "-c", DIE_WITH_PARENT, "1", "-c", "print('played')"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.fixture
def at_terminal(postgres_url, tmp_path):
    """Starts `parley run --workers 2` as a terminal does, in a process group of its own."""
    started = []

    def start(server, *words):
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "parley", "run", "public_goods", *MODELS),
                *("--workers", "2", "--concurrency", "2", "--store", postgres_url, "--json"),
                *words,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={
                **os.environ,
                "OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1",
                "TMPDIR": str(temporary),
            },
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def find_workers(url):
    return [line for line in command_lines().splitlines() if f"parley worker --store {url}" in line]


def test_ctrl_c_in_a_terminal_reaches_only_the_command(at_terminal, postgres_url, tmp_path):
    with endpoint(0.3) as server:
        process = at_terminal(server, "--repeats", "200")
        wait_until(lambda: server.arrived() > 20)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 3, err
        assert json.loads(out)["run"]["stop"]["status"] == "interrupted"
        assert "ended with code" not in err
        ref = open_store(postgres_url).find("last")
        with read_run(ref) as reader:
            assert {row.state for row in reader.snapshot.workers()} == {"left"}
            assert reader.matches.counts().get("running", 0) == 0
            # calls in flight were awaited: each reply is on record
            assert reader.calls.count() == len(server.log()) == server.arrived()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_second_ctrl_c_ends_the_workers_at_once(at_terminal, postgres_url, tmp_path):
    with endpoint(600) as server:
        process = at_terminal(server, "--repeats", "20")
        wait_until(lambda: server.arrived() >= 12)  # of 2 workers with 2 matches of 3 seats
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(2)
        assert process.poll() is None
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - began < local.AT_ONCE + 5
        assert process.returncode == 130, err
        assert "stopped without waiting for the calls in flight; resume with: " in err
    ref = open_store(postgres_url).find("last")
    wait_until(lambda: not find_workers(postgres_url))
    with read_run(ref) as reader:
        assert {row.state for row in reader.snapshot.workers()} == {
            "left"
        }  # they gave their matches back
        assert reader.matches.counts().get("running", 0) == 0
    assert [path for path in Path(tmp_path / "temporary").iterdir() if "parley" in path.name] == []
