"""Intervals, differences and ranks against published values and by simulation."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.statistics.estimates import (
    PairedDifference,
    adjust_for_pairs,
    block_means,
    compare_models,
    compute_cells,
    rank_intervals,
    tally_cells,
)
from parley.statistics.intervals import compute_interval
from parley.statistics.score_table import Observation, ScoreTable
from parley.statistics.student_t import t_cdf, t_quantile

# Two-sided 95% and 99% points of Student's t, as printed in the usual tables.
PRINTED = {
    1: (12.706, 63.657),
    2: (4.303, 9.925),
    5: (2.571, 4.032),
    9: (2.262, 3.250),
    30: (2.042, 2.750),
    120: (1.980, 2.617),
}


@pytest.mark.parametrize("freedom", PRINTED)
def test_quantiles_are_as_printed(freedom):
    assert t_quantile(0.975, freedom) == pytest.approx(PRINTED[freedom][0], abs=6e-4)
    assert t_quantile(0.995, freedom) == pytest.approx(PRINTED[freedom][1], abs=6e-4)


@given(st.floats(-50, 50), st.integers(1, 500))
def test_the_distribution_is_symmetric_and_inverts(t, freedom):
    p = t_cdf(t, freedom)
    assert 0 <= p <= 1
    assert t_cdf(-t, freedom) == pytest.approx(1 - p, abs=1e-12)
    if 1e-6 < p < 1 - 1e-6:
        assert t_quantile(p, freedom) == pytest.approx(t, abs=1e-6 * max(1, abs(t)))


def seen(values, alias="a", metric="m"):
    return [
        Observation(str(block), block, alias, "r", metric, value)
        for block, value in enumerate(values)
    ]


def test_a_textbook_interval():
    """Ten sleep-hour differences of Student's 1908 paper: mean 1.58, t = 4.06, p = .0028."""
    hours = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    found = compute_interval(hours, (-24, 24))
    assert (found.low, found.high) == (
        pytest.approx(0.7001, abs=1e-4),
        pytest.approx(2.4599, abs=1e-4),
    )
    table = block_means(ScoreTable.of([*seen(hours, "a"), *seen([0] * 10, "b")]))
    (pair,) = compare_models(table, {"m": (-24, 24)})
    assert pair.p == pytest.approx(0.002833, abs=1e-6)
    assert pair.difference == pytest.approx(1.58)


def test_seats_of_one_model_in_a_match_are_averaged_first():
    rows = [
        Observation("1", 1, "a", "r", "m", 0),
        Observation("1", 1, "a", "r", "m", 10),
        Observation("1", 2, "a", "r", "m", 9),
    ]
    assert block_means(ScoreTable.of(rows)) == {("m", "r", "a"): {"1": 7}}


def test_missing_is_counted_and_never_zero():
    rows = [*seen([1, 2, 3]), Observation("9", 9, "a", "r", "m", None)]
    (cell,) = compute_cells(tally_cells(ScoreTable.of(rows)), {"m": (0, 5)})
    assert (cell.mean, cell.blocks, cell.matches, cell.missing) == (2, 3, 4, 1)


def test_intervals_over_blocks_cover_under_clustering():
    """Twelve matches a block that share the block's luck: intervals over blocks cover 95%, over
    matches they would not."""
    rng, hits, runs = Random(1), 0, 1500
    for _ in range(runs):
        rows = []
        for block in range(10):
            luck = rng.gauss(0, 0.65)
            rows += [
                Observation(str(block), 12 * block + k, "a", "r", "m", 5 + luck + rng.gauss(0, 1))
                for k in range(12)
            ]
        (cell,) = compute_cells(tally_cells(ScoreTable.of(rows)), {"m": (-100, 100)})
        hits += cell.interval.low <= 5 <= cell.interval.high
    assert 0.935 <= hits / runs <= 0.965


def test_equals_are_rarely_declared_different():
    rng, wrong, runs = Random(2), 0, 400
    for _ in range(runs):
        rows = [
            row for alias in "abcd" for row in seen([rng.gauss(5, 1) for _ in range(10)], alias)
        ]
        wrong += any(
            pair.p <= 0.05
            for pair in compare_models(block_means(ScoreTable.of(rows)), {"m": (-100, 100)})
        )
    assert wrong / runs <= 0.07


def test_models_that_differ_by_the_same_amount_each_time_are_told_apart():
    luck = [5, 5.5, 4.8, 5.2, 5.9, 4.1, 5, 5.3, 4.7, 5.1]
    table = block_means(
        ScoreTable.of([*seen(luck, "a"), *seen([value - 2 for value in luck], "b")])
    )
    (pair,) = compare_models(table, {"m": (0, 10)})
    assert pair.p == pytest.approx(2 * 0.5**10)
    assert 0 < pair.low < 2 < pair.high
    (same,) = compare_models(
        block_means(
            ScoreTable.of([*seen(luck, "a"), *seen([value + 1e-15 for value in luck], "b")])
        ),
        {"m": (0, 10)},
    )
    assert (same.p, same.difference) == (1, pytest.approx(0))
    assert same.low < 0 < same.high


def test_holm_adjusts_as_in_the_worked_example():
    """p = .01, .02, .03, .04 become .04, .06, .06, .06."""
    family = [
        PairedDifference("r", "m", "a", str(n), 1, None, None, p)
        for n, p in enumerate((0.04, 0.01, 0.03, 0.02))
    ]
    assert [round(pair.p, 10) for pair in adjust_for_pairs(family)] == [0.06, 0.04, 0.06, 0.06]


def test_ranks_span_what_is_not_decided():
    rows = [
        *seen([9, 9.1, 8.9, 9, 9.2], "top"),
        *seen([5, 5.4, 4.8, 5.1, 5], "mid"),
        *seen([5.1, 5, 5.2, 4.9, 5.1], "mid2"),
    ]
    table = block_means(ScoreTable.of(rows))
    found = {
        rank.alias: (rank.low, rank.high)
        for rank in rank_intervals(table, compare_models(table, {"m": (0, 10)}), frozenset())
    }
    assert found == {"top": (1, 1), "mid": (2, 3), "mid2": (2, 3)}
    lower = {
        rank.alias: (rank.low, rank.high)
        for rank in rank_intervals(table, compare_models(table, {"m": (0, 10)}), frozenset({"m"}))
    }
    assert lower["top"] == (3, 3)


def test_ranks_follow_from_each_other():
    """Who beats one that beats a third stands before the third, though those two were not told
    apart."""
    table = {("m", "r", alias): {"1": 0.0} for alias in "abc"}
    family = [
        PairedDifference("r", "m", "a", "b", 1, None, None, 0.01),
        PairedDifference("r", "m", "b", "c", 1, None, None, 0.01),
    ]
    family.append(PairedDifference("r", "m", "a", "c", 2, None, None, 0.2))
    assert [(rank.low, rank.high) for rank in rank_intervals(table, family, frozenset())] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    circle = [*family[:2], PairedDifference("r", "m", "a", "c", -1, None, None, 0.01)]
    # says nothing
    assert [(rank.low, rank.high) for rank in rank_intervals(table, circle, frozenset())] == [
        (1, 3)
    ] * 3
