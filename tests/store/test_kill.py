"""kill -9 at random instants, then resume: every match ends once, no recorded reply is asked for
again."""

import fcntl
import json
import os
import pty
import random
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from contextlib import closing

import pytest

from parley.audit.audit import audit_run
from parley.store import find_run, read_run
from tests.endpoint import endpoint

MODELS = ("a", "b", "c", "d")
ROUNDS = 5


def parley(*words, store, url, **more):
    command = [sys.executable, "-m", "parley", *words, "--store", str(store)]
    environment = {**os.environ, "OPENAI_COMPATIBLE_BASE_URL": f"{url}/v1"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=environment, **{**streams, **more})


def begin(store, url, matches, concurrency=24, **more):
    models = [word for name in MODELS for word in ("-m", f"{name}=openai-compatible/mock")]
    options = (
        "--repeats",
        str(matches),
        "--seed",
        "11",
        "--concurrency",
        str(concurrency),
        "--json",
    )
    return parley("run", "public_goods", *models, *options, store=store, url=url, **more)


def recorded(path):
    """Every call on record, as it stands."""
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            rows = connection.execute(
                "SELECT id, match, round, seat, attempt, view_digest, content, at FROM calls"
            ).fetchall()
        connection.close()
    except sqlite3.OperationalError:  # killed before the tables were made
        return {}
    return {row[0]: row for row in rows}


def count_calls(path):
    """How many calls are on record; cheaper than to read them all, again and again."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute("SELECT COUNT(*) FROM calls").fetchone()[0]
        except sqlite3.OperationalError:  # the tables are not made yet
            return 0


def killed_and_resumed(tmp_path, matches, kills, concurrency, seed):
    """Play a run once straight through and once killed at random instants, and compare."""
    rng = random.Random(seed)
    with endpoint(0.02) as straight, begin(tmp_path / "straight", straight.url, matches) as whole:
        out, err = whole.communicate(timeout=300)
        assert whole.returncode == 0, err
        wanted, asked = json.loads(out), len(straight.log())
    assert asked == matches * ROUNDS * len(MODELS)

    store = tmp_path / "killed"
    most = concurrency * len(MODELS)  # calls that can be in flight
    with endpoint(0.02) as server:
        before, allowance, playing = {}, 0, 0
        process = begin(store, server.url, matches, concurrency)
        wait_until_playing(store, process, 0, rng)
        for _ in range(kills):
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert process.returncode == -signal.SIGKILL, (
                "the run was over before it could be killed"
            )
            allowance += most  # no more than were in flight can be lost
            (path,) = store.glob("*.parley")
            now = recorded(path)
            assert before.items() <= now.items()  # nothing acknowledged was lost or changed
            playing += len(now) > len(before)
            before = now
            process = parley(
                "resume",
                str(path),
                "--concurrency",
                str(concurrency),
                "--json",
                store=store,
                url=server.url,
            )
            began = time.time()
            instant = rng.uniform(0.05, 1.0)  # from the first moments of the process on
            if rng.random() < 0.7:
                wait_until_playing(store, process, len(before), rng)
            while time.time() - began < min(instant, 0.4):
                time.sleep(0.01)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        log = server.log()
    result, final = json.loads(out), recorded(path)
    assert before.items() <= final.items()
    assert playing >= kills // 2, "most kills must hit a run that plays"
    assert len(final) == asked  # as many replies on record as an uninterrupted run asks for
    assert len(log) <= asked + allowance
    with sqlite3.connect(path) as connection:
        states = connection.execute("SELECT state, COUNT(*) FROM matches GROUP BY state").fetchall()
    connection.close()
    assert states == [("done", matches)]
    for key in ("results", "pairs", "ranks", "violations", "cost"):
        assert result[key] == wanted[key]
    found = audit_run(find_run(path))
    assert found.breaches == []
    assert found.checked["replay"] == matches
    return len(log) - asked, allowance


def wait_until_playing(store, process, known, rng):
    """Until the process has recorded something new, then a random while longer."""
    deadline = time.time() + 60
    while time.time() < deadline and process.poll() is None:
        paths = list(store.glob("*.parley"))
        if paths and count_calls(paths[0]) > known:
            break
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.12))


def test_a_killed_run_resumes_to_the_same_result(tmp_path):
    killed_and_resumed(tmp_path, matches=30, kills=3, concurrency=3, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_thirty_kills_of_two_hundred_matches(tmp_path):
    repeated, allowance = killed_and_resumed(tmp_path, matches=200, kills=30, concurrency=3, seed=2)
    print(f"requests beyond an uninterrupted run: {repeated}, in flight at the kills: {allowance}")


def test_a_kill_before_the_first_reply_leaves_a_run_that_can_be_resumed(tmp_path):
    with endpoint(5.0) as slow, begin(tmp_path, slow.url, 2) as process:
        while not [path for path in tmp_path.glob("*.parley") if path.stat().st_size > 4096]:
            time.sleep(0.01)
        time.sleep(0.3)
        process.kill()
        process.communicate()
    (path,) = tmp_path.glob("*.parley")
    with (
        endpoint(0) as quick,
        parley("resume", str(path), "--json", store=tmp_path, url=quick.url) as again,
    ):
        out, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert json.loads(out)["run"]["matches"] == {"planned": 2, "done": 2, "failed": 0}


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_interrupt_drains_and_keeps_every_reply(tmp_path, signum):
    with endpoint(0.2) as server, begin(tmp_path, server.url, 100) as process:
        wait_until_playing(tmp_path, process, 5, random.Random(3))
        process.send_signal(signum)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 3, err
        (path,) = tmp_path.glob("*.parley")
        assert len(recorded(path)) == len(server.log())  # calls in flight were awaited
        assert "parley resume" in err
        facts = json.loads(out)["run"]
        assert (facts["state"], facts["stop"]["status"]) == ("stopped", "interrupted")
        assert 0 <= facts["matches"]["done"] < 100


def test_a_closed_terminal_drains_and_keeps_every_reply(tmp_path):
    """The system sends SIGHUP, and the shell may do so, too. Nobody reads the output any more."""
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with endpoint(1.0) as server:
        process = begin(tmp_path, server.url, 100, **streams, start_new_session=True,
                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))  # fmt: skip
        os.close(theirs)
        with process:
            wait_until_playing(tmp_path, process, 3, random.Random(4))
            os.close(ours)
            time.sleep(0.2)
            process.send_signal(signal.SIGHUP)
            assert process.wait(60) == 3
        (path,) = tmp_path.glob("*.parley")
        assert len(recorded(path)) == len(server.log())
    with read_run(find_run(str(path))) as reader:
        assert reader.info.state == "stopped"


def test_a_run_that_nohup_started_goes_on_without_its_terminal(tmp_path):
    with (
        endpoint(0.2) as server,
        begin(tmp_path, server.url, 10, preexec_fn=ignore_hangups) as process,
    ):
        wait_until_playing(tmp_path, process, 3, random.Random(5))
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        assert json.loads(out)["run"]["state"] == "done"


def ignore_hangups():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_the_second_interrupt_stops_at_once(tmp_path):
    with endpoint(600) as server, begin(tmp_path, server.url, 10) as process:
        while not server.arrived():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=100)  # long before the endpoint answers
        assert process.returncode == 130


def test_two_processes_do_not_play_the_same_run(tmp_path):
    # Two minutes of matches: the first process still plays when the second has started.
    with endpoint(0.3) as server, begin(tmp_path, server.url, 320, concurrency=4) as process:
        wait_until_playing(tmp_path, process, 0, random.Random(1))
        (path,) = tmp_path.glob("*.parley")
        with parley("resume", str(path), store=tmp_path, url=server.url) as other:
            _, err = other.communicate(timeout=90)
        assert other.returncode == 1
        assert "is already being played" in err
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
