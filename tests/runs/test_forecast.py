"""A dry run: how long the run takes at its limits, and what more models would take."""

import pytest

from parley.cli.run import forecast_table
from parley.config.experiment import Experiment
from parley.options import from_keywords
from parley.participants._registry import ModelLimits
from parley.runs.forecast import forecast_run
from parley.runs.forecast_time import CallSpeed, estimate_time
from parley.runs.stand_ins import Count
from tests import games

SPEED = CallSpeed(1.0, 100.0)
LOADS = {"a": Count(calls=100, tokens_in=50_000, tokens_out=10_000), "b": Count(100, 0, 0, 10_000)}


def time_at(at_once=10, **limits):
    given = {"a": ModelLimits(**limits)}
    return estimate_time(LOADS, given, 100, 50, at_once, SPEED)


def test_matches_at_a_time_divide_the_rounds_of_all_matches():
    """Two seconds a reply: a second until it begins, and a hundred tokens."""
    assert time_at(10) == (20.0, "--concurrency 10")
    assert time_at(1).seconds == 200
    assert time_at(1000).seconds == 4  # no more matches at a time than there are


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({"rpm": 20}, 300),  # 100 calls
        ({"tpm": 6000}, 600),  # 60,000 tokens, both ways
        ({"concurrency": 2}, 100),  # 100 calls of two seconds each, two at a time
    ],
)
def test_the_tightest_limit_decides(limits, seconds):
    (name, value) = next(iter(limits.items()))
    assert time_at(**limits) == (pytest.approx(seconds), f"a.{name}={value}")
    assert time_at(**{name: 10**9}).limited_by == "--concurrency 10"


def test_who_takes_no_time_makes_none():
    assert estimate_time({}, {}, 100, 10, 1, SPEED).seconds == 0


def asked(task, models=2, game=None, **options):
    experiment = Experiment(task, instance=game, given=from_keywords(**options))
    experiment.contestants = [
        experiment.add_model("vllm/m", f"m{number}") for number in range(models)
    ]
    return experiment


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text(
        "m0: {input: 10, output: 30}\nm1: {input: 10, output: 30}\n"
    )


def test_a_dry_run_says_how_long_it_takes_and_what_limits_it(here):
    found = forecast_run(asked("public_goods", repeats=20, concurrency=4).prepare())
    data = found.data
    assert 0 < data["seconds"]["low"] < data["seconds"]["high"]
    assert data["limited_by"] == "--concurrency 4"
    slow = asked("public_goods", repeats=20, concurrency=4)
    slow.models["m0"]["rpm"] = 2
    limited = forecast_run(slow.prepare())
    assert limited.data["limited_by"] == "m0.rpm=2"
    assert limited.data["seconds"]["low"] == pytest.approx(20 * 5 / 2 * 60)
    assert "takes about 50 min to" in forecast_table(limited).render()


def test_bots_take_no_time(here):
    bots = Experiment("public_goods", given=from_keywords(repeats=2))
    bots.contestants = [bots.add_model("bot/altruist"), bots.add_model("bot/random")]
    found = forecast_run(bots.prepare())
    assert (found.data["seconds"]["high"], found.data["limited_by"]) == (0, None)
    assert "time:" not in forecast_table(found).render()


@pytest.mark.parametrize(
    ("plan", "matches"),
    [("round_robin", {10: 90, 100: 9900}), ("cycles", {10: 10, 100: 100})],
)
def test_a_dry_run_says_what_more_models_would_take(plan, matches, here):
    found = forecast_run(asked("duel", game=games.Duel(), plan=plan, repeats=3).prepare())
    rows = {row["models"]: row for row in found.data["growth"]}
    assert {number: row["matches"] for number, row in rows.items()} == {
        number: 3 * count for number, count in matches.items()
    }
    a_match = found.data["range"]["calls"]["low"] / found.matches
    assert rows[10]["calls"]["low"] == pytest.approx(a_match * 3 * matches[10], rel=0.01)
    assert rows[100]["usd"]["high"] == pytest.approx(
        found.usd["high"] * 3 * matches[100] / found.matches, rel=0.01
    )
    text = forecast_table(found).render()
    assert f"with 100 models like these: {3 * matches[100]:,} matches" in text


def test_numbers_that_a_plan_cannot_seat_are_left_out(here):
    found = forecast_run(asked("public_goods", repeats=2).prepare())
    assert [row["models"] for row in found.data["growth"]] == [10]  # ten seats, and no more
    (row,) = found.data["growth"]
    assert row["matches"] == 2
    assert row["calls"]["low"] == 5 * found.data["range"]["calls"]["low"]
