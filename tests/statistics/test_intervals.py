"""Intervals cover what they promise, also near the bounds of a score and under clustering; equals
are not told apart."""

from functools import cache
from itertools import combinations, pairwise
from math import comb, exp, inf, sqrt
from random import Random
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import UsageError
from parley.statistics.estimates import block_means, compare_models
from parley.statistics.intervals import compute_interval, p_value_of_point
from parley.statistics.score_table import Observation, ScoreTable

LUCK = 0.3  # intraclass correlation of the matches of a block
FULL, SHORT = 4000, 500  # runs


def wins(rate):
    """Won or lost; every block has a win rate of its own."""

    def draw(rng, runs, blocks, matches):
        spread = 1 / LUCK - 1
        rates = rng.beta(rate * spread, (1 - rate) * spread, (runs, blocks))
        return rng.binomial(matches, rates) / matches

    return draw, (0, 1), rate


def judged(ability):
    """Scores from 1 to 10: item 0.5, model × item 0.4, dialogue 1.0, rounded and clipped."""

    def draw(rng, runs, blocks, matches):
        item = ability + rng.normal(0, sqrt(0.5**2 + 0.4**2), (runs, blocks, 1))
        return np.clip(np.rint(item + rng.normal(0, 1, (runs, blocks, matches))), 1, 10).mean(2)

    noise = NormalDist(ability, sqrt(0.5**2 + 0.4**2 + 1))
    edges = [-inf, *(score + 0.5 for score in range(1, 10)), inf]
    shares = [noise.cdf(high) - noise.cdf(low) for low, high in pairwise(edges)]
    return draw, (1, 10), sum(score * share for score, share in enumerate(shares, 1))


def even_payoffs():
    """Payoffs around the middle of their range."""

    def draw(rng, runs, blocks, matches):
        noise = sqrt(LUCK) * rng.normal(size=(runs, blocks, 1)) + sqrt(1 - LUCK) * rng.normal(
            size=(runs, blocks, matches)
        )
        return np.clip(55 + 15 * noise, 0, 110).mean(2)

    return draw, (0, 110), 55


def skewed_payoffs(usual, from_top=False):
    """Exponential payoffs, cut at the end of their range."""

    def draw(rng, runs, blocks, matches):
        shared = sqrt(LUCK)  # so that the squares correlate by LUCK
        noise = sqrt(shared) * rng.normal(size=(2, runs, blocks, 1))
        noise = noise + sqrt(1 - shared) * rng.normal(size=(2, runs, blocks, matches))
        paid = np.minimum(usual * (noise**2).sum(0) / 2, 110).mean(2)
        return 110 - paid if from_top else paid

    mean = usual * (1 - exp(-110 / usual))
    return draw, (0, 110), 110 - mean if from_top else mean


CASES = {
    "wins 0.5": (wins(0.5), 0.93),
    "wins 0.9": (wins(0.9), 0.93),
    "wins 0.95": (wins(0.95), 0.92),
    "wins 0.98": (wins(0.98), 0.93),
    "judged 5": (judged(5), 0.93),
    "judged 8.5": (judged(8.5), 0.93),
    "judged 8.97": (judged(8.97), 0.93),
    "even payoffs": (even_payoffs(), 0.93),
    "skewed payoffs": (skewed_payoffs(30), 0.93),
    "skewed from the top": (skewed_payoffs(30, from_top=True), 0.93),
}


def coverage(case, blocks, matches, runs, **options):
    draw, bounds, truth = case
    values = draw(np.random.default_rng([blocks, matches]), runs, blocks, matches).tolist()
    found = [compute_interval(row, bounds, **options) for row in values]
    return sum(each.low <= truth <= each.high for each in found) / runs


@pytest.mark.slow
@pytest.mark.parametrize("matches", [1, 4, 12])
@pytest.mark.parametrize("blocks", [10, 30])
@pytest.mark.parametrize("name", CASES)
def test_intervals_cover(name, blocks, matches):
    case, bar = CASES[name]
    assert coverage(case, blocks, matches, FULL) >= bar


@pytest.mark.parametrize(("blocks", "matches"), [(10, 1), (10, 12), (30, 4)])
@pytest.mark.parametrize("name", ["wins 0.5", "wins 0.9", "judged 8.97", "skewed payoffs"])
def test_intervals_cover_in_a_few_runs(name, blocks, matches):
    case, bar = CASES[name]
    assert coverage(case, blocks, matches, SHORT) >= bar - 2 * sqrt(bar * (1 - bar) / SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wins 0.5", "judged 8.97", "skewed payoffs"])
def test_the_bootstrap_covers(name):
    assert coverage(CASES[name][0], 20, 4, 300, method="bootstrap") >= 0.92


@pytest.mark.parametrize(
    ("name", "blocks", "most"),
    [
        ("judged 8.97", 10, 1.16),
        ("judged 8.97", 30, 1.06),
        ("skewed payoffs", 10, 1.1),
        ("wins 0.5", 10, 1),
    ],
)
def test_where_block_t_would_do_the_interval_for_bounded_scores_is_hardly_wider(name, blocks, most):
    draw, (low, high), _ = CASES[name][0]
    rows = draw(np.random.default_rng(3), 300, blocks, 4).tolist()
    ours = [compute_interval(row, (low, high)) for row in rows]
    # bounds so far away that block t applies
    usual = [compute_interval(row, (low - 1000, high + 1000)) for row in rows]
    assert {each.kind for each in usual} == {"block t"}
    narrowest = sum(min(each.high, high) - max(each.low, low) for each in usual)
    assert sum(each.high - each.low for each in ours) <= most * narrowest


@given(st.lists(st.floats(0, 1), min_size=0, max_size=30), st.sampled_from(["block", "bootstrap"]))
def test_no_interval_has_zero_width_or_leaves_the_range(values, method):
    found = compute_interval(values, (0, 1), method=method)
    if len(values) < 2:
        assert found == (None, None, None)
    else:
        assert 0 <= found.low < found.high <= 1


def test_a_bound_is_felt_when_it_is_near_and_only_then():
    assert compute_interval([4, 5, 6, 5, 4, 5], (1, 10)).kind == "block t"
    assert compute_interval([9, 10, 9, 10, 9, 9], (1, 10)).kind == "bounded"
    assert compute_interval([5, 5, 5, 5, 5, 5], (1, 10)).kind == "bounded"


def test_a_coin_has_wilsons_interval_but_for_students_t():
    """Wilson 1927: 9 of 10 gives .596 to .982 with 1.96; Student's t for nine degrees of freedom
    makes it wider."""
    found = compute_interval([1] * 9 + [0], (0, 1))
    assert (found.low, found.high) == (
        pytest.approx(0.526, abs=1e-3),
        pytest.approx(0.986, abs=1e-3),
    )


def test_intervals_do_not_depend_on_the_scale_or_its_direction():
    values = [0.9, 1, 0.7, 1, 1, 0.8, 0.95, 1]
    one, scaled = (
        compute_interval(values, (0, 1)),
        compute_interval([10 + 5 * value for value in values], (10, 15)),
    )
    assert (scaled.low, scaled.high) == (
        pytest.approx(10 + 5 * one.low),
        pytest.approx(10 + 5 * one.high),
    )
    turned = compute_interval([1 - value for value in values], (0, 1))
    assert (turned.low, turned.high) == (pytest.approx(1 - one.high), pytest.approx(1 - one.low))


def test_the_bootstrap_repeats_itself_in_any_order_of_blocks():
    values = [3.0, 4, 4, 7, 5, 6, 2, 9, 4, 5]
    found = compute_interval(values, (1, 10), method="bootstrap")
    assert found.kind == "bootstrap"
    assert found == compute_interval(values, (1, 10), method="bootstrap")
    turned = compute_interval(values[::-1], (1, 10), method="bootstrap")
    assert (turned.low, turned.high) == (pytest.approx(found.low), pytest.approx(found.high))
    # most draws would have no variance
    assert compute_interval([1] * 9 + [0], (0, 1), method="bootstrap").kind == "bounded"
    with pytest.raises(UsageError, match="did you mean 'bootstrap'"):
        compute_interval(values, (1, 10), method="bootstap")


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20), st.floats(-0.99, 0.99))
def test_a_point_has_the_level_at_which_the_interval_reaches_it(values, point):
    p = p_value_of_point(values, (-1, 1), point)
    if 1e-9 < p < 1 - 1e-9:
        found = compute_interval(values, (-1, 1), alpha=p)
        assert min(abs(found.low - point), abs(found.high - point)) < 1e-6


@cache
def remembered(gaps, matches):
    return p_value_of_point([gap / matches for gap in gaps], (-1, 1), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("matches", [1, 4, 12])
@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_equals_with_discrete_scores_are_rarely_declared_different(rate, matches, shared):
    """Four equals, ten blocks: one pair at most 5%, and any of six pairs after Holm."""
    rng, runs, spread = np.random.default_rng([matches, shared]), 4000, 1 / LUCK - 1
    rates = rng.beta(rate * spread, (1 - rate) * spread, (runs, 10, 1 if shared else 4))
    won = rng.binomial(matches, np.broadcast_to(rates, (runs, 10, 4)))
    ps = np.array(
        [
            [
                remembered(tuple(sorted((row[:, a] - row[:, b]).tolist())), matches)
                for a, b in combinations(range(4), 2)
            ]
            for row in won
        ]
    )
    slack = sqrt(0.05 * 0.95 / runs)
    assert (ps[:, 0] <= 0.05).mean() <= 0.05 + slack
    assert (6 * ps.min(1) <= 0.05).mean() <= 0.05 + slack


@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_equals_with_single_wins_are_rarely_declared_different(rate):
    rng, wrong, runs = Random(3), 0, 300
    for _ in range(runs):
        rows = [
            Observation(str(n), n, alias, "r", "won", rng.random() < rate)
            for alias in "abcd"
            for n in range(10)
        ]
        wrong += any(
            pair.p <= 0.05
            for pair in compare_models(block_means(ScoreTable.of(rows)), {"won": (0, 1)})
        )
    assert wrong / runs <= 0.05


@pytest.mark.parametrize("blocks", [7, 10, 13, 21])
def test_wins_against_each_other_are_no_surer_than_the_tosses_of_a_coin(blocks):
    """One match a block, one winner: block t would call 12% of fair coins unfair at seven blocks;
    exact, over all outcomes."""
    declared = [
        won
        for won in range(blocks + 1)
        if p_value_of_point([1.0] * won + [-1.0] * (blocks - won), (-1, 1), 0.0) <= 0.05
    ]
    assert sum(comb(blocks, won) for won in declared) / 2**blocks <= 0.05
