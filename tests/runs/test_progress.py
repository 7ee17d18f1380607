"""Progress in calls: how many there will be, and how long the rest takes."""

import asyncio
import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

from parley import run_async
from parley.config.experiment import Experiment
from parley.options import from_keywords
from parley.runs.forecast import estimate_calls
from parley.runs.progress import SANDBOX, Progress
from parley.runs.progress_display import (
    describe_calls,
    describe_progress,
    describe_time_left,
)
from tests.plans.replays import first_matches


def test_nothing_is_said_of_calls_before_anything_is_known():
    progress = Progress(planned=10, calls=4, in_flight=2)
    assert progress.expected_calls is None
    assert describe_calls(progress) == "4 calls"
    assert describe_time_left(progress) == ""


def test_calls_are_expected_from_a_forecast_and_then_from_what_is_played():
    progress = Progress(planned=10, calls_per_match=20, in_flight=4)
    assert progress.expected_calls == 200
    progress.calls, progress.done, progress.in_flight = 90, 2, 2  # thirty a match, not twenty
    assert progress.expected_calls == pytest.approx(10 * (20 + 90) / 4)
    progress.calls, progress.done, progress.in_flight = 300, 10, 0
    assert progress.expected_calls == pytest.approx(300)  # never fewer than were made


def test_what_was_played_before_is_not_expected_again():
    progress = Progress(calls=7, calls_per_match=20)  # seven for a screening
    progress.begin(finished=6)
    progress.planned = 10
    assert progress.expected_calls == 7 + 4 * 20


def test_calls_in_progress_and_matches_that_have_not_begun_are_expected_too():
    progress = Progress(planned=24, calls_per_match=1, done=8, calls=8, in_flight=12)
    progress.waiting = {"a": dict.fromkeys(range(12), 0.0), SANDBOX: {0: 0.0}}
    assert progress.expected_calls == 24  # 8 replies, 12 calls in progress, 4 matches to begin


def test_a_worker_does_not_know_how_many_matches_are_planned():
    progress = Progress(done=6, calls=77, in_flight=3)
    assert describe_progress(progress).startswith("6 matches played, 3 being played, 77 calls, ")
    assert describe_time_left(progress) == ""


def test_a_narrow_terminal_shows_what_a_program_prints_as_it_is():
    program = """
import asyncio
from parley.runs.progress import Progress
from parley.runs.progress_display import show_bar
progress = Progress(planned=10, calls=4, activity="loading [/red] [red]weights [key]")
asyncio.run(asyncio.wait_for(show_bar(progress, print), 1.0))
"""
    env = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
    outer, inner = pty.openpty()
    line = [sys.executable, "-c", program]
    with subprocess.Popen(line, env=env, stdin=inner, stdout=inner, stderr=inner):
        os.close(inner)
        shown = b""
        with suppress(OSError):  # how Linux says that nobody writes any more
            while more := os.read(outer, 4096):
                shown += more
    os.close(outer)
    assert b"loading [/red] [red]weights [key]" in shown
    assert b"MarkupError" not in shown


def test_the_round_is_named_again_when_a_download_has_ended():
    progress = Progress(status_line="stage 1 of 3", activity="fetching")
    assert describe_progress(progress).endswith(", fetching")
    progress.activity = ""
    assert describe_progress(progress).endswith(", stage 1 of 3")


def test_the_remaining_time_moves_with_every_call(monkeypatch):
    now = 100.0
    monkeypatch.setattr("parley.runs.progress.time.monotonic", lambda: now)
    progress = Progress(planned=2, calls_per_match=50)
    progress.begin(0)
    left = []
    for _ in range(3):
        now += 10.0
        progress.calls += 10
        left.append(describe_time_left(progress))
    assert left == ["~1 min 30 s left", "~1 min 20 s left", "~1 min 10 s left"]


@pytest.mark.parametrize("why", ["status_line", "activity"])
def test_no_time_left_is_shown_while_the_plan_is_open_or_nobody_plays(why):
    progress = Progress(planned=64, calls_per_match=10, calls=200)
    assert describe_time_left(progress)
    setattr(progress, why, "half-width 5 after 64 blocks" if why == "status_line" else "no worker")
    assert describe_time_left(progress) == ""


def test_stand_ins_tell_how_many_calls_a_match_takes():
    models = {name: {"model": f"bot/{name}"} for name in ("altruist", "free-rider", "random")}
    asked = Experiment("public_goods", models=models, given=from_keywords(repeats=4))
    prepared = asked.prepare()
    specs = first_matches(prepared.plan)
    assert asyncio.run(estimate_calls(prepared, specs)) == 15  # three players, five rounds


def test_nobody_pays_for_an_estimate_that_nobody_reads(tmp_path, monkeypatch):
    def refuse(*given):
        raise AssertionError("no estimate was asked for")

    monkeypatch.setattr("parley.runs.player.estimate_calls", refuse)
    models = {"a": "bot/altruist", "b": "bot/free-rider"}
    asyncio.run(run_async("public_goods", models, repeats=1, store=tmp_path))
