"""Simulations: what plans save, whether what they certify holds, and `parley simulate`, which tells
it in advance."""

import csv
import math
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pytest

import parley
from parley import Metric, Role, Task, UsageError
from parley.plans import Done, EndedMatches
from parley.plans.choice import choose_plan
from parley.plans.race import RaceRule
from parley.plans.stop_targets import StopTarget
from parley.runs.simulated_models import SimulatedModels, fit_models, round_scores, score_moments
from parley.runs.simulation import (
    Precision,
    Ranking,
    Simulation,
    simulate_precision,
    simulate_ranking,
)
from parley.statistics.stopping_rules import StabilityRule, WatchedCell
from parley.statistics.student_t import t_quantile
from parley.statistics.variance_components import estimate_components
from tests import games
from tests.cli.test_cli import EXAMPLE
from tests.cli.test_cli import parley as command_line

# What plans save. Abilities are spread over the range of DynaEval's table 2, noise is as usual for
# judges.


def spread(count, *ends, **noise):
    return SimulatedModels(
        np.array([np.linspace(best, worst, count) for best, worst in ends]), **noise
    )


def table_2(count):
    return spread(count, (8.97, 8.65), (8.77, 8.52))


def compared(world, runs, seed, top=None, epsilon=0.25):
    """Runs of the full round robin, and of the race."""
    rng = np.random.default_rng(seed)
    common = {"epsilon": epsilon, "top": top, "most": 50_000, "runs": runs, "rng": rng}
    return simulate_ranking(world, "round_robin", racing=False, **common), simulate_ranking(
        world, "cycles", racing=True, **common
    )


def share(full, race):
    assert all(trial.decided for trial in [*full, *race])
    return fmean(trial.matches for trial in race) / fmean(trial.matches for trial in full)


@pytest.mark.parametrize(("top", "bar"), [(None, 1 / 2), (3, 1 / 5)])
def test_a_race_of_ten_saves_what_it_should(top, bar):
    full, race = compared(table_2(10), 6, 1, top)
    assert share(full, race) <= bar
    assert not any(trial.wrong for trial in [*full, *race])


@pytest.mark.slow
@pytest.mark.parametrize(("top", "bar"), [(None, 1 / 2), (3, 1 / 5)])
def test_a_race_of_ten_saves_what_it_should_and_is_rarely_wrong(top, bar):
    full, race = compared(table_2(10), 60, 2, top)
    assert share(full, race) <= bar
    assert fmean(trial.wrong for trial in race) <= 0.05
    assert fmean(trial.wrong for trial in full) <= 0.05


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(5))
def test_a_race_of_fifty_saves_what_it_should(part):
    """Four runs of twenty at a time; none of them may be wrong, so that fewer than one in twenty
    are."""
    full, race = compared(table_2(50), 4, [50, part])
    assert share(full, race) <= 1 / 8
    assert not any(trial.wrong for trial in [*full, *race])


def exactly(width):
    """Two models that differ by just so much in what they are shown to score."""
    return SimulatedModels(np.array([[8.8, 8.8 - width]] * 2), step=None)


EQUALS = {
    "marks": (SimulatedModels(np.full((2, 5), 8.8)), 0.5),
    "noisy marks": (SimulatedModels(np.full((2, 3), 8.8), match=3.0), 0.5),
    "won or lost": (
        SimulatedModels(np.full((2, 4), 0.5), low=0, high=1, item=0.2, model_item=0.1, match=0.4),
        0.1,
    ),
    "mostly won": (
        SimulatedModels(np.full((2, 4), 0.9), low=0, high=1, item=0.1, model_item=0.1, match=0.3),
        0.1,
    ),
    "just so far apart": (exactly(0.4), 0.999 * float(np.ptp(exactly(0.4).truth[0]))),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", EQUALS)
def test_a_race_rarely_tells_equals_apart_or_calls_level_who_are_not(kind):
    world, epsilon = EQUALS[kind]
    rng = np.random.default_rng(3)
    trials = simulate_ranking(
        world, "cycles", racing=True, epsilon=epsilon, most=20_000, runs=400, rng=rng
    )
    assert all(trial.decided for trial in trials)
    assert fmean(trial.wrong for trial in trials) <= 0.05


# Worlds, and the simulated plans against the real ones.


@pytest.mark.parametrize("step", [1.0, 0.5, None])
def test_the_truth_of_a_world_is_what_its_scores_come_to(step):
    world = SimulatedModels(np.array([[9.3, 8.0, 2.5], [8.8, 5.5, 1.2]]), step=step)
    rng = np.random.default_rng(1)
    for design in ("round_robin", "cycles"):
        means = np.mean([world.blocks(design, 500, rng)[0].mean(axis=0) for _ in range(60)], axis=0)
        assert means == pytest.approx(world.truth, abs=0.03)


def test_partners_count_where_abilities_depend_on_them():
    against = np.array([[[0, 9, 5], [8, 0, 4], [3, 2, 0]]] * 2, dtype=float)
    world = SimulatedModels(against, item=0, model_item=0, match=0, step=None)
    assert world.truth == pytest.approx(np.array([[7, 6, 2.5]] * 2))
    scores, after = world.blocks("cycles", 1, np.random.default_rng(2))
    for model in range(3):
        assert scores[0, 0, model] == against[0, model, after[0, model]]
        assert scores[0, 1, after[0, model]] == against[1, after[0, model], model]
    assert world.blocks("round_robin", 1, np.random.default_rng(2))[0][0] == pytest.approx(
        world.truth
    )


def test_moments_are_those_of_many_scores():
    rng, abilities = np.random.default_rng(3), np.array([0.5, 3.0, 9.7])
    for step, low, high in ((1.0, 1.0, 10.0), (None, 1.0, 10.0), (2.0, 0.5, 9.5), (1.0, 0.0, 1.0)):
        drawn = round_scores(abilities + 1.3 * rng.standard_normal((400_000, 3)), low, high, step)
        mean, variance = score_moments(abilities, low, high, step, 1.3)
        assert mean == pytest.approx(drawn.mean(axis=0), abs=0.01)
        assert variance == pytest.approx(drawn.var(axis=0), abs=0.02)


@pytest.mark.parametrize(
    ("means", "low", "high", "noise", "step"),
    [
        ([[8.9, 7.0], [9.4, 6.0]], 1, 10, (0.5, 0.4, 0.9), 1.0),
        ([[0.9, 0.6, 0.5]], 0, 1, (0.05, 0.05, 0.43), 1.0),
        ([[30, 70]], 0, 110, (5, 5, 20), None),
    ],
)
def test_a_world_can_be_made_like_a_run(means, low, high, noise, step):
    world = fit_models(np.array(means, dtype=float), low, high, *noise, step, 2)
    assert world.truth == pytest.approx(np.array(means), abs=0.002 * (high - low))
    variance = score_moments(world.abilities, low, high, step, world.spread)[1]
    assert math.sqrt(variance.mean()) == pytest.approx(math.hypot(*noise), rel=0.03)
    still = fit_models(np.array(means, dtype=float), low, high, 0, 0, 0, step, 2)
    assert still.truth == pytest.approx(np.array(means))


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 10.0},
        {"item": -1},
        {"seats": 3},
        {"seats": 1},
        {"abilities": np.array([[9.0]])},
        {"abilities": np.ones((1, 2, 2)), "seats": 1},
    ],
)
def test_worlds_that_cannot_be_are_refused(wrong):
    with pytest.raises(UsageError):
        SimulatedModels(**{"abilities": np.array([[9.0, 8.0], [9.0, 8.0]]), **wrong})


@dataclass(frozen=True)
class Pair(Task):
    """Two roles, marks from 1 to 10; never really played here."""

    roles = {"writer": Role(), "editor": Role()}

    def metrics(self, seats):
        return [Metric("mark", 1, 10, epsilon=0.5)]

    async def play(self, referee, writer, editor):
        return {writer: 5, editor: 5}


def test_a_course_says_what_it_takes_and_when_it_ends():
    class Endless(Simulation):
        def take(self, scores):
            pass

    with pytest.raises(TypeError, match="judge"):
        Endless(SimulatedModels(np.full((2, 3), 8.0)), "cycles", 1, 10, np.random.default_rng(0))


ALIASES = [f"m{n}" for n in range(5)]
FIVE = SimulatedModels(np.array([[8.8, 8.2, 7.9, 7.2, 6.0], [8.0, 7.9, 7.8, 6.6, 6.4]]))


def played(name, world, stop, seed):
    """A real plan to its end, its matches scored as in the world. Idle seats are given nonsense: it
    must not count."""
    plan = choose_plan(name, Pair(), ALIASES, {}, [], 1, seed, stop=stop, max_blocks=5000)
    rng, luck, specs, scores = np.random.default_rng([7, seed]), {}, {}, {}
    for matches in plan.matches(EndedMatches(scores)):
        if isinstance(matches, Done):
            return list(specs.values()), matches
        for spec in matches:
            specs[spec.number] = spec
            base = luck.get(spec.block)
            if base is None:
                base = world.item * rng.standard_normal() + world.model_item * rng.standard_normal(
                    (world.roles, world.models)
                )
                luck[spec.block] = base
            scores[spec.number] = {}
            for seat, alias in spec.seats.items():
                role, model = ("writer", "editor").index(seat.role), ALIASES.index(alias)
                score = (
                    world.abilities[role, model]
                    + base[role, model]
                    + world.match * rng.standard_normal()
                )
                fair = float(round_scores(np.array(score), world.low, world.high, world.step))
                scores[spec.number][seat] = {"mark": 1.0 if seat in spec.unscored else fair}
    raise AssertionError("a plan ends with Done")


def about_equal(real, simulated):
    """Whether two samples can have one mean."""
    error = math.sqrt(np.var(real, ddof=1) / len(real) + np.var(simulated, ddof=1) / len(simulated))
    return abs(fmean(real) - fmean(simulated)) < 3.5 * error


def faithful(runs, seed):
    rng = np.random.default_rng(seed)
    for top in (None, 2):
        real = [
            played("race", FIVE, StopTarget(half_width=0.5, top=top), number)
            for number in range(runs)
        ]
        assert {end.status for _, end in real} == {"converged"}
        trials = simulate_ranking(
            FIVE, "cycles", racing=True, epsilon=0.5, top=top, most=5000, runs=100, rng=rng
        )
        assert about_equal([len(specs) for specs, _ in real], [trial.matches for trial in trials])
        assert about_equal(
            [len({spec.block for spec in specs}) for specs, _ in real],
            [trial.blocks for trial in trials],
        )
    for name in ("cycles", "round_robin"):
        real = [
            played(name, FIVE, StopTarget(half_width=0.5), number) for number in range(runs // 2)
        ]
        assert {end.status for _, end in real} == {"converged"}
        trials = simulate_precision(FIVE, name, epsilon=0.5, most=5000, runs=60, rng=rng)
        assert about_equal([len(specs) for specs, _ in real], [trial.matches for trial in trials])


def test_the_simulator_needs_what_real_plans_need():
    faithful(6, 4)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_simulator_needs_what_real_plans_need_over_many_runs():
    faithful(80, 5)


class Taken:
    """Keeps every block that a simulated run took in, and what was wanted next."""

    def take(self, scores):
        self.blocks.append((scores[0].copy(), self.wanted[0].copy()))
        super().take(scores)


class TakenRanking(Taken, Ranking):
    pass


class TakenPrecision(Taken, Precision):
    pass


@pytest.mark.parametrize("top", [None, 2])
def test_a_simulated_race_and_a_real_one_decide_alike(top):
    stop, metrics = (
        StopTarget(half_width=0.5, top=top),
        {role: Pair().metrics({})[0] for role in Pair.roles},
    )
    rng = np.random.default_rng(6)
    course = TakenRanking(
        FIVE, "cycles", 1, 5000, rng, racing=True, epsilon=0.5, alpha=0.05, top=top
    )
    course.blocks = []
    (trial,) = course.play(None, 0)
    race, ends = RaceRule(metrics, ALIASES, stop), None
    for number, (scores, wanted) in enumerate(course.blocks, 1):
        assert ends is None
        cells = {
            (role, alias): scores[r, m]
            for r, role in enumerate(metrics)
            for m, alias in enumerate(ALIASES)
        }
        race.add_block(
            {cell: [1 + 9 * score] for cell, score in cells.items() if not np.isnan(score)}
        )
        after = course.blocks[number][1] if number < len(course.blocks) else None
        if after is None or (after != wanted).any():  # here it looked, and somebody left
            ends = race.verdict()
        if after is not None:
            assert [
                race.is_wanted(role, alias) for role in metrics for alias in ALIASES
            ] == after.ravel().tolist()
    assert ends.status == "converged"
    assert trial.blocks == len(course.blocks) == race.blocks


def test_a_simulated_half_width_and_a_real_one_end_alike():
    course = TakenPrecision(
        FIVE, "cycles", 1, 5000, np.random.default_rng(8), epsilon=0.5, alpha=0.05
    )
    course.blocks = []
    (trial,) = course.play(None, 0)
    cells = [
        WatchedCell(str(role), str(model), "mark", 1, 10, 0.5)
        for role in range(2)
        for model in range(5)
    ]
    stability = StabilityRule(cells, 0.05)
    for scores, _ in course.blocks:
        assert stability.blocks < len(course.blocks) - 12 or stability.status != "drift"
        stability.add(
            {
                (cell.role, cell.alias): [1 + 9 * scores[int(cell.role), int(cell.alias)]]
                for cell in cells
            }
        )
    assert stability.status == "converged"
    assert (trial.blocks, trial.decided, trial.matches) == (
        len(course.blocks),
        True,
        5 * len(course.blocks),
    )


def test_unscored_seats_fill_tables_so_that_partners_stay_drawn_from_all():
    specs, end = played("race", FIVE, StopTarget(half_width=0.5), 11)
    assert end.status == "converged"
    partners, left, last = Counter(), {}, {}
    for spec in specs:
        assert len(spec.unscored) < 2  # a match that decides nothing is not played
        (writer, a), (editor, b) = spec.seats.items()
        last[a, "writer"] = last[b, "editor"] = spec.block
        for seat, alias, other in ((writer, a, b), (editor, b, a)):
            cell = (seat.role, alias)
            # who has nothing left to decide does not come back
            assert (cell in left) <= (seat in spec.unscored)
            if seat in spec.unscored:
                left.setdefault(cell, spec.block)
            elif alias == "m1":
                partners[other] += 1
    assert left  # somebody was decided early, and sat on for others
    assert len(partners) == 4
    assert min(partners.values()) > 0.75 * max(partners.values())  # decided or not


# The sequential rule: at every look, every interval holds its truth, in all but 5% of the runs.


def block_of(cells, scores):
    """Scores by run and cell, or by match, run and cell, as the rule takes them."""
    scores = scores[None] if scores.ndim == 2 else scores
    flat = scores.reshape(len(scores), -1).T
    return {
        (cell.role, cell.alias): values for cell, values in zip(cells, flat.tolist(), strict=True)
    }


def missed(draw, truth, low, high, runs, blocks, population=None):
    """The share of runs in which any cell's interval leaves out its truth at any look; all runs
    move on together."""
    count = truth.shape[1]
    cells = [
        WatchedCell(str(run), str(cell), "score", low, high, 0.01)
        for run in range(runs)
        for cell in range(count)
    ]
    # so that every cell has the level that it has in one run
    stability = StabilityRule(cells, 0.05 * runs, population)
    wrong, aims = np.zeros(runs, dtype=bool), np.broadcast_to(truth, (runs, count))
    for block in range(blocks):
        stability.add(block_of(cells, draw(block)))
        ends = np.array([found or (np.nan, np.nan) for found in stability.intervals]).reshape(
            runs, count, 2
        )
        wrong |= ~((ends[..., 0] <= aims + 1e-9) & (aims - 1e-9 <= ends[..., 1])).all(axis=1)
    return wrong.mean()


def judge(rng, runs, failures=0.0):
    """Marks from 1 to 10 as judges give them; a dialogue that fails has the least."""
    abilities = np.array([[9.0, 8.6, 8.2, 7.0]])

    def draw(block):
        noise = 0.5 * rng.standard_normal((runs, 1)) + math.hypot(0.4, 1.0) * rng.standard_normal(
            (runs, 4)
        )
        marks = round_scores(abilities + noise, 1, 10, 1.0)
        return np.where(rng.random((runs, 4)) < failures, 1.0, marks)

    mean = score_moments(abilities, 1, 10, 1.0, math.hypot(0.5, 0.4, 1.0))[0]
    return draw, failures + (1 - failures) * mean, 1, 10


def wins(rng, runs, rate):
    """Won or lost; how easy an item is differs."""

    def draw(block):
        return (rng.random((runs, 4)) < rng.beta(4 * rate, 4 * (1 - rate), (runs, 1))).astype(float)

    return draw, np.full((1, 4), rate), 0, 1


def payoffs(rng, runs):
    """From 0 to 110, most of them low."""
    return lambda block: 110 * rng.beta(0.8, 3.2, (runs, 4)), np.full((1, 4), 22.0), 0, 110


SCORES = {
    "judge": judge,
    "failures": lambda rng, runs: judge(rng, runs, 0.07),
    "even": lambda rng, runs: wins(rng, runs, 0.5),
    "strong": lambda rng, runs: wins(rng, runs, 0.9),
    "payoffs": payoffs,
}


@pytest.mark.parametrize("kind", SCORES)
def test_intervals_hold_at_every_look(kind):
    runs = 60
    assert missed(*SCORES[kind](np.random.default_rng(12), runs), runs, blocks=60) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCORES)
def test_intervals_hold_at_every_look_in_many_long_runs(kind):
    runs = 500
    assert missed(*SCORES[kind](np.random.default_rng(13), runs), runs, blocks=500) <= 0.05


def peeked(runs, blocks):
    """The share of runs in which a 95% t interval leaves out its truth at any look from the tenth
    block on."""
    draw, truth, _, _ = judge(np.random.default_rng(14), runs)
    scores = np.array([draw(block)[:, 0] for block in range(blocks)])
    n = np.arange(1, blocks + 1)[:, None]
    mean = scores.cumsum(axis=0) / n
    error = np.sqrt(np.maximum((scores**2).cumsum(axis=0) / n - mean**2, 0) / np.maximum(n - 1, 1))
    reach = np.array([t_quantile(0.975, max(block, 1)) for block in range(blocks)])[:, None] * error
    return (np.abs(mean - truth[0, 0]) > reach)[9:].any(axis=0).mean()


def test_looking_again_and_again_at_a_t_interval_misses_far_more_often_than_it_says():
    assert peeked(2000, 10) == pytest.approx(0.05, abs=0.02)  # one look
    assert peeked(2000, 500) > 0.3


def these(
    rng, runs, count, times, low=1.0, high=10.0, step=1.0, item=0.5, own=0.4, match=1.0, middle=8.0
):
    """Exactly so many items, in the order in which they are played, each with its own mean score
    for every model."""
    abilities = (
        middle
        + item * rng.standard_normal((count, runs, 1))
        + own * rng.standard_normal((count, runs, 3))
    )
    truth = score_moments(abilities, low, high, step, match)[0].mean(axis=0)

    def draw(block):
        return round_scores(
            abilities[block] + match * rng.standard_normal((times, runs, 3)), low, high, step
        )

    return draw, truth, low, high


ITEMS = {
    "one match a block": {"times": 1},
    "three matches a block": {"times": 3},
    "one match, all noise": {"times": 1, "item": 0.05, "own": 0.05, "match": 1.5},
    "two matches, all noise": {"times": 2, "item": 0.05, "own": 0.05, "match": 1.5},
    "near the bound": {"times": 2, "middle": 9.6},
    "won or lost": {
        "times": 1,
        "low": 0.0,
        "high": 1.0,
        "middle": 0.8,
        "item": 0.3,
        "own": 0.2,
        "match": 0.4,
    },
    "won or lost, twice": {
        "times": 2,
        "low": 0.0,
        "high": 1.0,
        "middle": 0.8,
        "item": 0.3,
        "own": 0.2,
        "match": 0.4,
    },
}


@pytest.mark.parametrize("kind", list(ITEMS)[:2])
def test_intervals_hold_for_exactly_these_items_until_they_are_used_up(kind):
    runs = 60
    found = these(np.random.default_rng(15), runs, 30, **ITEMS[kind])
    assert missed(*found, runs, blocks=30, population=30) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("count", [25, 120])
@pytest.mark.parametrize("kind", ITEMS)
def test_intervals_hold_for_exactly_these_items_in_many_runs(kind, count):
    runs = 500
    found = these(np.random.default_rng([16, count]), runs, count, **ITEMS[kind])
    assert missed(*found, runs, blocks=count, population=count) <= 0.05


@pytest.mark.parametrize(("rate", "times"), [(0.99, 2), (0.9, 1)])
def test_intervals_hold_for_exactly_these_items_where_nearly_all_is_won(rate, times):
    runs, rng = 60, np.random.default_rng(17)

    def draw(block):
        return (rng.random((times, runs, 3)) < rate).astype(float)

    assert missed(draw, np.full((1, 3), rate), 0, 1, runs, blocks=25, population=25) <= 0.05


# Variance components.


def planted(rng, models, blocks, matches, item, own, match, roles=("writer", "editor")):
    """Scores by role and model, block and match, with known components; `matches` may differ from
    cell to cell."""
    luck = rng.normal(0, item, blocks)
    found = {}
    for role in roles:
        for model in range(models):
            here = luck + rng.normal(0, own, blocks)
            found[role, f"m{model}"] = {
                str(block): (5 + model + here[block] + rng.normal(0, match, matches())).tolist()
                for block in range(blocks)
            }
    return found


@pytest.mark.parametrize(
    "sds", [(0.5, 0.4, 1.0), (8, 8, 18), (0, 1, 0.5), (1, 0, 1), (0.7, 0.7, 0)]
)
def test_components_are_recovered(sds):
    rng = np.random.default_rng(20)
    found = estimate_components(planted(rng, 4, 2000, lambda: 3, *sds))
    assert found[:3] == pytest.approx(sds, abs=0.06 * max(sds))
    assert (found.separable, found.opposed, found.blocks) == (True, 1.0, 2000)


def test_components_are_recovered_from_blocks_with_holes():
    """As a race leaves them: who is decided plays no more, and now and then a match has no
    score."""
    rng = np.random.default_rng(21)
    scores = planted(rng, 6, 3000, lambda: int(rng.integers(0, 4)), 0.5, 0.4, 1.0)
    for number, cell in enumerate(scores):
        scores[cell] = {
            block: values
            for block, values in scores[cell].items()
            if int(block) < 3000 / (1 + number % 3)
        }
    assert estimate_components(scores)[:3] == pytest.approx((0.5, 0.4, 1.0), abs=0.06)


def test_with_one_match_a_block_what_cannot_be_told_apart_is_match_noise():
    found = estimate_components(
        planted(np.random.default_rng(22), 4, 3000, lambda: 1, 0.5, 0.4, 1.0)
    )
    assert found[:3] == pytest.approx((0.5, 0, math.hypot(0.4, 1.0)), abs=0.04)
    assert not found.separable


def test_one_models_gain_that_is_anothers_loss_is_noticed():
    luck = np.random.default_rng(23).normal(0, 1, 200)
    scores = {
        ("r", name): {str(n): [sign * value] for n, value in enumerate(luck)}
        for name, sign in (("a", 1), ("b", -1))
    }
    found = estimate_components(scores)
    assert found.opposed == pytest.approx(2)
    assert found[:3] == pytest.approx((0, 0, luck.std(ddof=1)))


def test_components_of_next_to_nothing():
    still = {("r", name): {str(block): [3.0] for block in range(5)} for name in "ab"}
    assert estimate_components(still)[:3] == (0, 0, 0)
    with pytest.raises(UsageError, match="two blocks"):
        estimate_components({("r", "a"): {"1": [3.0]}, ("r", "b"): {"1": [4.0], "2": []}})


# The command.

FOUR = ("simulate", "--abilities", "9.0,8.4,7.7,7", "--half-width", "0.6", "--runs", "5")


def test_the_table_tells_what_each_plan_needs(tmp_path):
    out = command_line(*FOUR, "--top", 2, cwd=tmp_path).out
    rows = re.findall(
        r"^(half-width 0.6|full ranking|top 2) +(round_robin|cycles|race) +(.*)$", out, re.MULTILINE
    )
    assert [plan for _, plan, _ in rows] == [
        "round_robin",
        "cycles",
        *["round_robin", "cycles", "race"] * 2,
    ]
    for _, plan, cells in rows:
        assert re.fullmatch(
            r"[\d,]+ +[\d,]+ +[\d,]+ +[\d,]+ +– +– +100% +\d+% +\d\.\d\d +5", cells
        ), cells
        assert plan != "round_robin" or "1.00" in cells
    assert "the median over 5 simulated runs" in out
    assert (
        "assumed: 4 models, 2 per match, 2 roles; scores from 1 to 10 in steps of 1; standard "
        "deviations of the noise: 0.5 between items, 0.4 of a model on an item"
    ) in out
    assert "mean scores in both roles: 8.877, 8.3" in out
    assert "the cost is unknown" in out
    assert "advice: for a half-width of 0.6, use `--plan cycles --until-stable` (it needs 0." in out
    assert "for the top 2, use `--plan race --top 2`" in out


def test_the_object_has_the_promised_keys_and_money_only_where_it_is_known(tmp_path):
    data = command_line(*FOUR, "--json", cwd=tmp_path).json
    assert data["schema"] == "parley.simulation/1"
    assert set(data) == {"schema", "assumed", "results", "advice"}
    assert set(data["assumed"]) == {
        "run", "models", "roles", "seats", "abilities", "means", "range", "step", "noise",
        "half_width", "target", "alpha", "max_blocks", "seed", "usd_per_match", "remarks",
    }  # fmt: skip
    for row in data["results"]:
        assert set(row) == {
            "aim", "top", "plan", "runs", "decided", "wrong", "blocks", "matches", "usd",
            "given_up", "ratio"
        }  # fmt: skip
        assert row["usd"] == {"median": None, "p90": None, "mean": None}
        assert (row["runs"], row["decided"], row["given_up"]) == (5, 1, None)
    paid = command_line(*FOUR, "--json", "--usd-per-match", "0.02", cwd=tmp_path).json
    for row, before in zip(paid["results"], data["results"], strict=True):
        assert row["matches"] == before["matches"]
        assert row["usd"]["median"] == pytest.approx(0.02 * row["matches"]["median"])


def test_equal_seeds_give_equal_text_and_a_further_aim_changes_nothing(tmp_path):
    first, again = (command_line(*FOUR, "--seed", 3, cwd=tmp_path).out for _ in range(2))
    assert first == again
    assert first != command_line(*FOUR, "--seed", 4, cwd=tmp_path).out
    rows = command_line(*FOUR, "--seed", 3, "--top", 2, "--json", cwd=tmp_path).json["results"]
    assert rows[:5] == command_line(*FOUR, "--seed", 3, "--json", cwd=tmp_path).json["results"]


def test_what_is_not_decided_has_no_number(tmp_path):
    data = command_line(*FOUR, "--max-blocks", 20, "--json", cwd=tmp_path).json
    for row in data["results"]:
        assert (
            row["decided"],
            row["wrong"],
            row["ratio"],
            row["matches"]["median"],
            row["blocks"]["p90"],
        ) == (0, 0, *[None] * 3)
    out = command_line(*FOUR, "--max-blocks", 20, cwd=tmp_path).out
    assert re.search(r"full ranking +cycles +> 20 +> 20 +> 80 +> 80 +– +– +0% +0% +– +5", out)
    assert "within 20 blocks: raise --max-blocks" in out


def test_few_models_are_told_that_a_race_saves_little(tmp_path):
    close = ("simulate", "--abilities", "8.6,8.4,8.3", "--half-width", "0.5", "--runs", 5)
    assert (
        "with few models, `--plan race` needs almost as many matches as `--plan cycles`"
        in command_line(*close, cwd=tmp_path).out
    )


def test_who_plays_alone_has_one_plan_and_a_race(tmp_path):
    words = (
        "--abilities",
        "70,62,50",
        "--range",
        "0,100",
        "--seats",
        1,
        "--half-width",
        6,
        "--runs",
        3,
    )
    data = command_line("simulate", *words, "--json", cwd=tmp_path).json
    assert [row["plan"] for row in data["results"]] == ["each", "each", "race"]
    assert data["assumed"]["noise"] == {"item": 8, "model_item": 8, "match": 18}
    assert data["results"][0]["matches"]["median"] == 3 * data["results"][0]["blocks"]["median"]
    assert "1 per match" in command_line("simulate", *words, cwd=tmp_path).out


def test_models_are_spread_evenly_and_roles_may_differ(tmp_path):
    words = ("--models", 5, "--best", 9, "--worst", 7, "--half-width", 1, "--runs", 1)
    facts = command_line("simulate", *words, "--json", cwd=tmp_path).json["assumed"]
    assert facts["abilities"] == [[9, 8.5, 8, 7.5, 7]] * 2
    words = ("--abilities", "9,8", "--abilities", "7,8.5", "--half-width", 1, "--runs", 1)
    facts = command_line("simulate", *words, "--json", cwd=tmp_path).json["assumed"]
    assert facts["abilities"] == [[9, 8], [7, 8.5]]
    assert "mean scores in role 2: 6.99" in command_line("simulate", *words, cwd=tmp_path).out
    words = ("--abilities", "9,8", "--roles", 1, "--half-width", 1, "--runs", 1)
    assert "2 per match, 1 role;" in command_line("simulate", *words, cwd=tmp_path).out


@pytest.mark.parametrize(
    ("form", "mark"),
    [("markdown", "| aim | plan |"), ("latex", r"\begin{tabular}"), ("csv", "aim,top,plan")],
)
def test_the_table_comes_in_several_forms(tmp_path, form, mark):
    out = command_line(*FOUR, "--format", form, cwd=tmp_path).out
    assert mark in out
    if form == "csv":
        rows = list(csv.DictReader(out.splitlines()))
        data = command_line(*FOUR, "--json", cwd=tmp_path).json["results"]
        assert [float(row["matches_mean"]) for row in rows] == [
            row["matches"]["mean"] for row in data
        ]
        assert {row["usd_median"] for row in rows} == {""}


def test_progress_is_told_on_stderr_where_it_takes_long(tmp_path, monkeypatch):
    monkeypatch.setattr("parley.cli.simulate.SOON", 3600)
    assert command_line(*FOUR, cwd=tmp_path).err == ""
    monkeypatch.setattr("parley.cli.simulate.SOON", 0)
    monkeypatch.setattr("parley.cli.simulate.EVERY", 0)
    assert re.search(
        r"parley: simulating full ranking, race: \d of 5 runs finished, now at block \d+",
        command_line(*FOUR, cwd=tmp_path).err,
    )


def test_help_does_not_wait_for_numpy():
    code = (
        "import sys\nfrom parley.cli import command\n"
        "command(['simulate', '--help'], standalone_mode=False)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", f"{code}print('numpy' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.endswith("False\n")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A folder with runs to estimate from."""
    place = tmp_path_factory.mktemp("store")
    bots = ("-m", "bot/tit-for-tat", "-m", "bot/defector", "-m", "bot/random")
    command_line("run", EXAMPLE, *bots, "--repeats", 12, "--name", "dilemma", cwd=place)
    two = ("-m", "bot/random", "-m", "bot/reciprocator")
    command_line("run", "public_goods", *two, "--repeats", 20, "--name", "two", cwd=place)
    command_line(
        "run",
        "public_goods",
        *two,
        "-m",
        "bot/altruist",
        "--repeats",
        2,
        "--name",
        "three",
        cwd=place,
    )
    command_line("run", "public_goods", *two, "--repeats", 1, "--name", "once", cwd=place)
    parley.run(
        games.Judged(),
        {"a": lambda view: "x", "b": lambda view: "y"},
        store=place / "runs",
        name="unscored",
    )
    parley.run(games.Judged(), {"a": lambda view: "x"}, store=place / "runs", name="alone")
    parley.run(
        Uneven(),
        {"a": lambda view: "x", "b": lambda view: "y"},
        store=place / "runs",
        name="uneven",
    )
    parley.run(
        Unseen(),
        {"a": lambda view: "x", "b": lambda view: "y"},
        store=place / "runs",
        name="unseen",
    )
    parley.run(
        Golf(),
        {"a": lambda view: "x", "b": lambda view: "xyz"},
        store=place / "runs",
        name="golf",
        repeats=12,
    )
    return place


@dataclass(frozen=True)
class Uneven(Task):
    """Roles with scores of different kinds."""

    roles = {"left": Role(), "right": Role()}

    def metrics(self, seats):
        return [
            Metric("won", 0, 1, epsilon=0.1, roles=("left",)),
            Metric("marks", 1, 10, epsilon=0.5, roles=("right",)),
        ]

    async def play(self, referee, left, right):
        return {left: {"won": 1}, right: {"marks": 5}}


@dataclass(frozen=True)
class Unseen(Uneven):
    """A role that has no score."""

    def metrics(self, seats):
        return [Metric("won", 0, 1, epsilon=0.1, roles=("left",))]

    async def play(self, referee, left, right):
        return {left: {"won": 1}}


@dataclass(frozen=True)
class Golf(Task):
    """The fewer letters, the better; one plays alone."""

    roles = {"player": Role()}

    def metrics(self, seats):
        return [Metric("letters", 0, 10, epsilon=1, better="lower")]

    async def play(self, referee, player):
        said = await referee.ask(player, "Say something.")
        return {player: min(10, len(said) + referee.rng.randrange(3))}


def test_a_run_says_what_to_assume(store):
    data = command_line("simulate", "dilemma", "--runs", 3, "--json", cwd=store).json
    rows = command_line("show", "dilemma", "--json", cwd=store).json["results"]
    facts = data["assumed"]
    assert facts["run"].startswith("prisoners_dilemma-")
    assert (
        facts["models"],
        facts["roles"],
        facts["seats"],
        facts["step"],
        facts["half_width"],
    ) == (3, 1, 2, 1, 1.25)
    assert facts["range"] == [0, 25]
    assert sorted(facts["means"][0]) == pytest.approx(sorted(row["mean"] for row in rows), abs=0.05)
    assert facts["noise"]["match"] > 1
    out = command_line("simulate", "dilemma", "--runs", 3, cwd=store).out
    assert "estimated from prisoners_dilemma-" in out
    assert "cannot be separated" not in out  # every model meets two others, twice


def test_options_override_what_a_run_says(store):
    words = ("--half-width", 3, "--noise", "1,1,2", "--roles", 2, "--step", 0, "--runs", 1)
    facts = command_line("simulate", "dilemma", *words, "--json", cwd=store).json["assumed"]
    assert (facts["half_width"], facts["roles"], facts["step"]) == (3, 2, None)
    assert [facts["noise"][name] for name in ("item", "model_item", "match")] == pytest.approx(
        [1, 1, 2], rel=0.1
    )
    many = command_line(
        "simulate", "dilemma", "--models", 6, "--half-width", 4, "--runs", 1, "--json", cwd=store
    ).json["assumed"]
    means = command_line(
        "simulate", "dilemma", "--half-width", 4, "--runs", 1, "--json", cwd=store
    ).json["assumed"]["means"][0]
    assert many["means"][0][0] == pytest.approx(max(means), abs=0.05)
    assert many["means"][0][-1] == pytest.approx(min(means), abs=0.05)
    own = command_line(
        "simulate",
        "dilemma",
        "--abilities",
        "9,8",
        "--half-width",
        4,
        "--runs",
        1,
        "--json",
        cwd=store,
    ).json
    assert own["assumed"]["abilities"] == [[9, 8]]
    assert own["assumed"]["noise"]["match"] > 1
    two = command_line("simulate", "three", "--seats", 2, "--runs", 1, "--json", cwd=store).json[
        "assumed"
    ]
    assert (two["seats"], two["models"]) == (2, 3)


def test_what_a_run_cannot_tell_is_said(store):
    out = command_line("simulate", "two", "--runs", 1, cwd=store).out
    assert "every block has one match per model" in out
    assert "0 of a model on an item" in out
    once = ("simulate", "once", "--noise", "2,2,5", "--runs", 1)
    assert "estimated from public_goods-" in command_line(*once, cwd=store).out


def test_less_may_be_better(store):
    data = command_line("simulate", "golf", "--runs", 1, "--json", cwd=store).json
    assert data["assumed"]["means"][0][0] > data["assumed"]["means"][0][1]
    assert "mirrors all scores" in data["assumed"]["remarks"][0]
    assert data["assumed"]["seats"] == 1


def test_unscored_seats_do_not_count(store, tmp_path):
    (tmp_path / "runs").mkdir()
    (path,) = (path for path in (store / "runs").glob("prisoners*.parley"))
    copy = tmp_path / "runs" / "copy.parley"
    shutil.copy(path, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE scores SET value = 25 WHERE match = 1 AND seat = 'players.1'")
    connection.close()
    changed = command_line("simulate", copy, "--runs", 1, "--json", cwd=tmp_path).json["assumed"][
        "means"
    ]
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE matches SET unscored = '[\"players.1\"]' WHERE number = 1")
    connection.close()
    unscored = command_line("simulate", copy, "--runs", 1, "--json", cwd=tmp_path).json["assumed"][
        "means"
    ]
    assert sum(unscored[0]) < sum(changed[0]) - 0.1


WRONG = {
    "nothing": ((), "--abilities 9,8.8,8.5 or --models 10"),
    "no precision": (("--abilities", "9,8"), "--half-width X"),
    "no number": (("--abilities", "9,x", "--half-width", ".5"),
                  "numbers like 9,8.8,8.5, not '9,x'"),
    "empty": (("--abilities", "", "--half-width", ".5"), "not ''"),
    "nan": (("--abilities", "9,nan", "--half-width", ".5"), "finite numbers"),
    "infinite": (("--models", "3", "--best", "inf", "--worst", "8", "--half-width", ".5"),
                 "--best is inf and --worst is 8"),
    "one ability": (("--abilities", "9", "--half-width", ".5"), "at least two models, not 1"),
    "too many": (("--abilities", ",".join(["9"] * 201), "--half-width", ".5"),
                 "at most 200 models"),
    "uneven roles": (("--abilities", "9,8", "--abilities", "9", "--half-width", ".5"),
                     "each time with one number for every model"),
    "three roles": ((*["--abilities", "9,8"] * 3, "--half-width", ".5"), "twice for two roles"),
    "roles too few": ((*["--abilities", "9,8"] * 2, "--roles", "1", "--half-width", ".5"),
                      "2 roles, but only 1"),
    "roles too many": (("--abilities", "9,8", "--roles", "2", "--seats", "1", "--half-width", ".5"),
                       "2 roles need 2 seats"),
    "both ways": (("--abilities", "9,8", "--models", "3", "--half-width", ".5"), "use either"),
    "one model": (("--models", "1", "--best", "9", "--worst", "8", "--half-width", ".5"),
                  "--models"),
    "no ends": (("--models", "3", "--half-width", ".5"), "--best X and --worst X"),
    "ends of nothing": (("--best", "9", "--half-width", ".5"), "need --models N"),
    "ends reversed": (("--models", "3", "--best", "8", "--worst", "9", "--half-width", ".5"),
                      "at least as high as --worst"),
    "top": (("--abilities", "9,8", "--top", "3", "--half-width", ".5"), "only 2 models"),
    "top zero": (("--abilities", "9,8", "--top", "0", "--half-width", ".5"), "--top"),
    "range reversed": (("--abilities", "9,8", "--range", "10,1", "--half-width", ".5"),
                       "the lowest and the highest score"),
    "range of one": (("--abilities", "9,8", "--range", "10", "--half-width", ".5"),
                     "like 1,10, not '10'"),
    "range endless": (("--abilities", "9,8", "--range", "-1e308,1e308", "--half-width", ".5"),
                      "the lowest and the highest"),
    "outside": (("--abilities", "9,11", "--half-width", ".5"), "11 is outside the range"),
    "noise negative": (("--abilities", "9,8", "--noise", "1,-1,1", "--half-width", ".5"),
                       "of at least 0"),
    "noise of two": (("--abilities", "9,8", "--noise", "1,1", "--half-width", ".5"),
                     "three standard deviations"),
    "noise in words": (("--abilities", "9,8", "--noise", "little", "--half-width", ".5"),
                       "numbers like 0.5,0.4,1"),
    "noise unknown": (("--abilities", "3,4", "--range", "0,5", "--half-width", ".5"),
                      "set --noise"),
    "width zero": (("--abilities", "9,8", "--half-width", "0"), "more than 0"),
    "width nan": (("--abilities", "9,8", "--half-width", "nan"), "more than 0"),
    "width wide": (("--abilities", "9,8", "--half-width", "9"),
                   "less than the range of the scores (9)"),
    "width in words": (("--abilities", "9,8", "--half-width", "thin"), "--half-width"),
    "step": (("--abilities", "9,8", "--step", "-1", "--half-width", ".5"), "scores (9), not -1"),
    "step nan": (("--abilities", "9,8", "--step", "nan", "--half-width", ".5"), "not nan"),
    "alpha": (("--abilities", "9,8", "--alpha", "1", "--half-width", ".5"),
              "between 0 and 1, not 1"),
    "alpha nan": (("--abilities", "9,8", "--alpha", "nan", "--half-width", ".5"),
                  "between 0 and 1"),
    "no runs": (("--abilities", "9,8", "--runs", "0", "--half-width", ".5"), "--runs"),
    "no blocks": (("--abilities", "9,8", "--max-blocks", "0", "--half-width", ".5"),
                  "--max-blocks"),
    "seed": (("--abilities", "9,8", "--seed", "-1", "--half-width", ".5"), "--seed"),
    "money": (("--abilities", "9,8", "--usd-per-match", "-1", "--half-width", ".5"),
              "at least 0, not -1"),
    "money nan": (("--abilities", "9,8", "--usd-per-match", "nan", "--half-width", ".5"),
                  "at least 0, not nan"),
    "three seats": (("--abilities", "9,8", "--seats", "3", "--half-width", ".5"), "--seats"),
    "unknown run": (("nothing",), "unknown run"),
    "run at a larger table": (("three",),
                              "has 3 contestants per match, but only matches with 1 or 2 "
                              "contestants can be simulated"),
    "run of one block": (("once",), "from a single block: set --noise"),
    "run without scores": (("unscored",), "has no score in `points` in any match"),
    "run of one model": (("alone",), "one model (a)"),
    "run with uneven roles": (("uneven",),
                              "scores with different ranges (left: won 0 to 1, right: marks 1 "
                              "to 10)"),
    "run with an unscored role": (("unseen",), "right has no score"),
    "run and a range that does not fit": (("dilemma", "--range", "0,2"),
                                          "outside the range of the scores, 0 to 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_a_clear_message(store, name):
    words, message = WRONG[name]
    done = command_line("simulate", *words, cwd=store, code=2)
    assert message in done.err
    assert done.out == ""
    assert len(done.err) < 500
