"""The figures that benchmarks compute rather than measure: lower bounds on matches, and prices.
Those that measure work."""

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cost import run as cost
from benchmarks.cost.lower_bound import (
    PRECISION,
    allocate_for_ranking,
    allocate_for_top,
    bound_matches,
    closest_alternative,
    kl,
    pair_information,
    residual_variances,
)
from benchmarks.scale import appends

from parley.runs.simulated_models import SimulatedModels
from parley.runs.simulation import SimulatedRun, simulate_ranking

DELTA = 0.05
SCALE = Path(__file__).resolve().parents[1] / "benchmarks" / "scale" / "run.py"


@pytest.mark.parametrize("gap", [0.3, 1.0, 4.0])
def test_two_models_need_what_the_closed_form_says(gap):
    """2 σ² kl(δ, 1 - δ) / Δ² pairs of scores, where σ² is the variance of their difference."""
    means, variances = np.array([gap, 0.0]), np.array([2.0, 2.0])
    closed = 2 * (2 * 2.0) * kl(DELTA, 1 - DELTA) / gap**2
    found = allocate_for_ranking(means, variances, 0.25, DELTA)
    assert found.bound / 2 == pytest.approx(closed, rel=PRECISION)
    assert found.scores == pytest.approx([closed, closed], rel=PRECISION)
    # for the better of two, the other one has to overtake it by ε
    found = allocate_for_top(means, variances, 0.1, DELTA, 1)
    assert found.bound / 2 == pytest.approx(closed * gap**2 / (gap + 0.1) ** 2, rel=PRECISION)


def test_models_within_the_margin_are_shown_to_be_equal():
    entropy = kl(DELTA, 1 - DELTA)
    assert pair_information(0.05, 0.25, DELTA) == pytest.approx(entropy / 0.2**2)
    assert pair_information(-0.2, 0.25, DELTA) == pytest.approx(entropy / 0.2**2)
    assert pair_information(0.5, 0.25, DELTA) == pytest.approx(entropy / 0.5**2)


@pytest.mark.parametrize("seed", range(6))
def test_the_allocation_beats_an_even_one_and_excludes_every_alternative(seed):
    rng = np.random.default_rng(seed)
    count = 6
    means, variances = rng.normal(0, 1, count), rng.uniform(0.5, 2, count)
    wanted = kl(1 - DELTA, DELTA)

    found = allocate_for_ranking(means, variances, 0.3, DELTA).scores
    needs = [
        2
        * pair_information(means[i] - means[j], 0.3, DELTA)
        * (variances[i] / x + variances[j] / y)
        for i, x in enumerate(found)
        for j, y in enumerate(found)
        if i < j
    ]
    assert max(needs) <= 1 + 1e-9
    even = count * max(
        2 * pair_information(means[i] - means[j], 0.3, DELTA) * (variances[i] + variances[j])
        for i in range(count)
        for j in range(i)
    )
    assert found.sum() < even

    def proven(scores):
        """The information about the closest alternative, relative to what is needed."""
        top = np.argsort(-means)[:2].tolist()
        costs = (closest_alternative(means, variances, scores, m, 0.3, 2) for m in top)
        return min(float(each @ scores) for each in costs) / wanted

    found = allocate_for_top(means, variances, 0.3, DELTA, 2)
    assert proven(found.scores) == pytest.approx(1)
    assert found.bound <= found.scores.sum() <= found.bound / (1 - PRECISION) * (1 + 1e-9)
    assert found.scores.sum() < count / proven(np.ones(count))


def test_no_plan_needs_fewer_matches_than_the_bound():
    world = SimulatedModels(np.array([[8.0, 6.0, 4.0], [8.0, 6.0, 4.0]]), step=None)
    # without rounding and far from the ends, the variance is that of the noise
    assert residual_variances(world)[:, 1] == pytest.approx(0.4**2 + 1.0, rel=0.01)
    bound = bound_matches(world, 0.5, DELTA, None)
    trials = simulate_ranking(
        world, "cycles", racing=True, epsilon=0.5, most=500, runs=5, rng=np.random.default_rng(1)
    )
    assert 0 < bound < min(trial.matches for trial in trials)
    for trial in trials:
        assert sum(map(sum, trial.seats)) == 2 * trial.matches
        assert list(trial.looks) == sorted(set(trial.looks))
        assert trial.looks[-1] == trial.matches


def test_a_conversation_grows_at_its_end_and_its_beginning_is_cached():
    dialogue = cost.Dialogue((1000, 1200), (100, 50), 3, verdict=(500, 80))
    assert dialogue.calls(0) == [(1000, 0, 100), (1150, 1000, 100), (1300, 1150, 100)]
    assert dialogue.calls(1) == [(1300, 0, 50), (1450, 1300, 50), (1600, 1450, 50)]
    assert dialogue.judged == [(950, 0, 80)]
    assert dialogue.steps == 7
    plain = cost.ListedModel("a", 1.0, 0.1, 1.25, 0.0, 1024, 1)
    # the first prompt is too short for the cache; the second is written; the third reads it
    usd = cost.price_calls(plain, dialogue.calls(0), caching=True)
    assert usd * 1e6 == pytest.approx(1000 + 1150 * 1.25 + 1150 * 0.1 + 150 * 1.25)
    assert cost.price_calls(plain, dialogue.calls(0), caching=False) * 1e6 == 3450
    stepped = cost.ListedModel("b", 1.0, 0.5, 1.0, 0.0)
    usd = cost.price_calls(stepped, dialogue.calls(0), caching=True)
    assert usd * 1e6 == pytest.approx(3450 - 0.5 * 1024)  # of 1,150 known tokens, 8 steps of 128


def test_hours_are_those_of_the_busiest_model_and_at_least_one_match_for_each_look():
    dialogue = cost.Dialogue((1000, 1000), (100, 100), 1)
    trial = SimulatedRun(100, 50, True, False, (90, 100), ((50, 50), (50, 50)))
    tokens = 50 * (1100 + 1200)
    match = 2 * cost.CALL_SECONDS / 3600
    assert cost.count_hours(trial, dialogue, tokens, 10**9) == pytest.approx(2 * match)
    assert cost.count_hours(trial, dialogue, tokens, 1000) == pytest.approx(tokens / 1000 / 60)
    found = cost.spend(trial, dialogue)
    assert found.usd == pytest.approx(
        sum(
            50 * cost.price_calls(m, dialogue.calls(r), False)
            for m in (cost.MODELS[0], cost.MODELS[5])
            for r in (0, 1)
        )
    )
    assert found.usd_batch == found.usd / 2
    assert found.hours_batch == 2 * 2 * cost.BATCH_HOURS


def test_acknowledgements_of_both_stores_are_counted(place, monkeypatch):
    monkeypatch.setattr(appends, "WARM_UP", 0.05)
    found = asyncio.run(appends.append_replies(place, callers=5, seconds=0.1))
    assert found["acks_s"] > 0
    assert found["commits_s"] <= found["acks_s"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_benchmark_of_scale_works():
    command = [sys.executable, SCALE, "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert "durable acknowledgements a second, PostgreSQL / SQLite" in done.stdout
