"""kill -9 at random instants of a run that evolves: what is shown, said and scored stays the same,
and no recorded reply is paid twice."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from parley.audit.audit import audit_run
from parley.store import find_run
from tests.endpoint import endpoint
from tests.store.test_kill import count_calls

CONCURRENCY = 4


def parley(*words, store, url):
    environment = {**os.environ, "OPENAI_COMPATIBLE_BASE_URL": f"{url}/v1"}
    return subprocess.Popen(
        [sys.executable, "-m", "parley", *words, "--store", str(store), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def begin(store, url, items):
    settings = ("retriever=bm25", "k=2", "stages=2", "controls=true", "held_out=0.2")
    words = [word for setting in settings for word in ("--evolve", setting)]
    return parley(
        *("run", "qa", "-m", "m=openai-compatible/mock", "--items", str(items), "--set", "shots=0"),
        *("--concurrency", str(CONCURRENCY), *words),
        store=store,
        url=url,
    )


def on_record(path):
    """Calls, scores and recalled experiences, without times."""
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            tables = (
                "SELECT match, round, seat, attempt, view_digest, content, sent FROM calls",
                "SELECT match, seat, metric, value FROM scores",
                "SELECT match, seat, version, shown FROM recalled",
            )
            found = [set(connection.execute(query).fetchall()) for query in tables]
        connection.close()
    except sqlite3.OperationalError:  # killed before the tables were made
        return [set(), set(), set()]
    return found


def killed_and_resumed(tmp_path, items, kills, seed):
    rng = random.Random(seed)
    with endpoint(0) as straight, begin(tmp_path / "straight", straight.url, items) as whole:
        out, err = whole.communicate(timeout=300)
        assert whole.returncode == 0, err
        asked = len(straight.log())
    (path,) = (tmp_path / "straight").glob("*.parley")
    wanted = on_record(path)
    assert len(wanted[0]) == asked == items * (1 + 2 * 4 + 1)  # four arms, and a probe

    store, stages = tmp_path / "killed", set()
    with endpoint(0.02) as server:
        process = begin(store, server.url, items)
        before = [set(), set(), set()]
        for number in range(kills):
            # each kill comes a little later in the run, so that every stage is hit
            target = int(len(wanted[0]) * (number + rng.random()) / (kills + 1))
            wait_for_calls(store, process, target)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            (path,) = store.glob("*.parley")
            now = on_record(path)
            assert all(old <= new for old, new in zip(before, now, strict=True))
            stages.add(stage_of(path))
            before = now
            process = parley(
                "resume", str(path), "--concurrency", str(CONCURRENCY), store=store, url=server.url
            )
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        requests = len(server.log())
    assert on_record(path) == wanted
    assert requests <= asked + kills * CONCURRENCY  # only calls in flight are asked again
    assert json.loads(out)["run"]["state"] == "done"
    found = audit_run(find_run(path))
    assert found.breaches == []
    assert found.checked["recalled"] == asked - items
    return stages


def wait_for_calls(store, process, target):
    deadline = time.time() + 120
    while time.time() < deadline and process.poll() is None:
        paths = list(store.glob("*.parley"))
        if paths and count_calls(paths[0]) >= target:
            return
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()


def stage_of(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        (stage,) = connection.execute("SELECT MAX(stage) FROM matches").fetchone()
    connection.close()
    return stage


def test_a_killed_run_is_shown_the_same_experiences(tmp_path):
    killed_and_resumed(tmp_path, items=8, kills=2, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_in_every_stage(tmp_path):
    stages = killed_and_resumed(tmp_path, items=40, kills=20, seed=2)
    assert stages >= {0, 1, 2}
