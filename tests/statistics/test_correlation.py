"""Correlations against published values, KIEval's table 5 among them, values of other packages,
properties, simulation."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.statistics.correlation import centred_correlation, mid_ranks, pearson, spearman
from tests.kieval import TABLE_2, TABLE_5

# Anscombe 1973: four sets that all have r = .816.
SHARED = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE = [
    (SHARED, [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]),
    (SHARED, [9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74]),
    (SHARED, [7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73]),
    (
        [8, 8, 8, 8, 8, 8, 8, 19, 8, 8, 8],
        [6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89],
    ),
]
FIRST = [7, 8, 6, 9, 5, 7, 8, 4, 6, 7, 9, 3, 7, 8, 5, 6, 10, 7, 6, 8]
SECOND = [6, 8, 7, 9, 4, 7, 9, 5, 6, 8, 8, 2, 7, 7, 5, 7, 10, 6, 4, 8]

numbers = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), max_size=15)
small = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from("abcd")), max_size=20
)


@pytest.mark.parametrize(("x", "y"), ANSCOMBE)
def test_anscombes_quartet(x, y):
    found = pearson(x, y)
    assert found.r == pytest.approx(0.8165, abs=5e-4)
    assert found.p == pytest.approx(0.00217, abs=2e-5)
    assert found.n == 11


@pytest.mark.parametrize("row", TABLE_5)
@pytest.mark.parametrize("kept", [range(7), [0, 1, 2, 3, 4, 6]], ids=["all", "without Yi-6B"])
def test_kieval_table_5(row, kept):
    datasets = TABLE_2.values() if row == "Overall" else [TABLE_2[row]]
    found = pearson(
        *(
            [side[model] for dataset in datasets for side in [dataset[place]] for model in kept]
            for place in (0, 1)
        )
    )
    r, p = TABLE_5[row][:2] if len(kept) == 7 else TABLE_5[row][2:]
    assert found.r == pytest.approx(r, abs=0.002)
    assert found.p == pytest.approx(p, rel=0.05)


def test_pearson_as_scipy_has_it():
    found = pearson(FIRST, SECOND)
    assert (found.r, found.p) == (
        pytest.approx(0.8941404876286376),
        pytest.approx(1.0736105744385642e-07),
    )
    assert found.interval[:2] == pytest.approx((0.7473135554906766, 0.9577161971569913))
    weak = pearson([2.1, 3.4, 1.9, 5.6, 4.4, 3.3, 7.8], [-1.2, 0.4, -2.2, 0.1, 1.9, -0.3, 0.2])
    assert (weak.r, weak.p) == (
        pytest.approx(0.5347219608958722),
        pytest.approx(0.2162328426211214),
    )
    assert weak.interval == (
        pytest.approx(-0.36552425081484474),
        pytest.approx(0.9180875836056845),
        "Fisher z",
    )


def test_spearman_as_scipy_has_it():
    tied = spearman(FIRST, SECOND)
    assert (tied.r, tied.p) == (
        pytest.approx(0.8795057185293051),
        pytest.approx(3.258108867593364e-07),
    )
    assert tied.interval.low < tied.r < tied.interval.high
    weak = spearman([2.1, 3.4, 1.9, 5.6, 4.4, 3.3, 7.8], [-1.2, 0.4, -2.2, 0.1, 1.9, -0.3, 0.2])
    # by all 5,040 orders
    assert (weak.r, weak.p) == (
        pytest.approx(0.7142857142857144),
        pytest.approx(0.0880952380952381),
    )
    assert mid_ranks([3, 1, 3, 2, 3]) == [4, 1, 4, 2, 4]


@pytest.mark.parametrize("formula", [pearson, spearman])
def test_what_points_cannot_tell_is_unknown(formula):
    for x, y in [
        ([], []),
        ([1], [2]),
        ([1, None], [2, 3]),
        ([0.1] * 3, [1, 2, 3]),
        ([1, 2, 3], [0, 0, 0]),
    ]:
        found = formula(x, y)
        assert (found.r, found.p, found.interval) == (None, None, (None, None, None))
    two, three = formula([1, 2], [5, 3]), formula([1, 2, 3], [5, 4, 3])
    assert (two.r, two.p, two.interval.low) == (-1, None, None)
    assert (three.r, three.p, three.interval.low) == (
        -1,
        0 if formula is pearson else pytest.approx(1 / 3),
        None,
    )
    assert formula([0, 1, 2], [0, 1e-200, 2e-200]).r == 1
    assert pearson([1, 2, 3], [0.1 + 0.2, 0.3, 0.3]).r is None  # they differ by rounding alone
    gaps = formula([1, None, 2, 4, 3], [1, 2, None, 3, 5])
    assert (gaps.n, gaps.dropped) == (3, 2)


@given(numbers, st.floats(0.5, 100), st.floats(-100, 100))
def test_pearson_is_symmetric_bounded_and_blind_to_units(points, factor, shift):
    x, y = [a for a, _ in points], [b for _, b in points]
    found = pearson(x, y)
    assert found.r == pytest.approx(pearson(y, x).r)
    if found.r is not None:
        assert -1 <= found.r <= 1
        assert found.p is None or 0 <= found.p <= 1
        if min(max(side) - min(side) for side in (x, y)) > 1e-3:
            moved = pearson([factor * a + shift for a in x], [-b for b in y])
            assert moved.r == pytest.approx(-found.r, abs=1e-6)
    if found.interval.low is not None:
        assert -1 <= found.interval.low <= found.r <= found.interval.high <= 1


@given(small)
def test_spearman_sees_only_order(points):
    x, y = [a for a, _, _ in points], [b for _, b, _ in points]
    found = spearman(x, y)
    assert found.r == pytest.approx(spearman(y, x).r)
    assert found.r == pytest.approx(spearman([a**3 for a in x], [math.exp(b) for b in y]).r)
    assert spearman(x, x).r == (1 if len(set(x)) > 1 else None)


@given(small, st.randoms(use_true_random=False), st.sampled_from([1, 0.1, 1 / 3]))
def test_what_an_item_adds_to_all_its_values_changes_nothing(points, rng, unit):
    level = {"a": 0, "b": 3, "c": 7, "d": 100}
    score, metric, blocks = ([point[place] for point in points] for place in (0, 1, 2))
    found = centred_correlation(score, metric, blocks)
    rng.shuffle(points)
    moved = [((a + level[block]) * unit, b * unit, block) for a, b, block in points]
    again = centred_correlation(*([point[place] for point in moved] for place in (0, 1, 2)))
    assert again.value == pytest.approx(found.value)
    assert found.value is None or -1 <= found.value <= 1
    assert found.n + found.dropped == len(points)


def test_items_make_no_validity():
    """Easy items score high and are solved more often, but within an item the judge has it the
    wrong way round."""
    score, metric, blocks = [], [], []
    for item in range(20):
        score += [item + 1, item]
        metric += [item, item + 1]
        blocks += [f"{item:02}"] * 2
    assert spearman(score, metric).r > 0.95
    found = centred_correlation(score, metric, blocks)
    assert (found.value, found.n, found.blocks, found.interval.kind) == (-1, 40, 20, "bounded")
    assert -1 == found.interval.low < found.interval.high < 0


def test_equal_distances_from_different_means_are_ties():
    """Thirds cannot be written exactly: (7, 8, 8) and (4, 5, 5) must still be ranked alike."""
    score, blocks = [7, 8, 8, 4, 5, 5, 0.1, 1.1, 1.1], list("aaabbbccc")
    assert centred_correlation(score, [0, 1, 1] * 3, blocks).value == 1
    assert centred_correlation([value / 7 for value in score], [0, 0.3, 0.3] * 3, blocks).value == 1


def test_rows_that_say_nothing_are_left_out():
    found = centred_correlation(
        [1, 2, 3, None, 5, 9], [10, 20, 5, 6, 7, 1], ["a", "a", "b", "b", "c", "d"]
    )
    assert (found.value, found.n, found.blocks, found.dropped) == (1, 2, 1, 4)
    for nothing in ([], [1, 2], [None, 3]):
        assert centred_correlation(nothing, nothing, list("ab")[: len(nothing)]).value is None
    # the judge never tells two apart
    assert centred_correlation([5, 5, 7, 7], [1, 2, 3, 4], ["a", "a", "b", "b"]).value is None


def coverage(runs, blocks, seed, rho=0.6):
    """How often the interval holds the truth, with items that matter more than models, and five
    rows an item.

    Within an item score and metric are normal with correlation ρ, so the rank correlation is 6/π
    asin(ρ/2).
    """
    rng, hits, truth = Random(seed), 0, 6 / math.pi * math.asin(rho / 2)
    for _ in range(runs):
        rows = []
        for block in range(blocks):
            ease = rng.gauss(0, 3)
            for _ in range(5):
                quality = rng.gauss(0, 1)
                score = rho * quality + math.sqrt(1 - rho**2) * rng.gauss(0, 1)
                rows.append((score + ease, quality - 2 * ease, f"{block:03}"))
        found = centred_correlation(*zip(*rows, strict=True)).interval
        hits += found.low <= truth <= found.high
    return hits / runs


def test_the_interval_of_the_centred_correlation_covers(monkeypatch):
    monkeypatch.setattr("parley.statistics.agreement.DRAWS", 200)
    assert coverage(80, 12, seed=6) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "rho"), [(8, 0.6), (15, 0.0), (15, 0.9), (40, 0.6)])
def test_the_interval_of_the_centred_correlation_covers_in_the_long_run(blocks, rho, monkeypatch):
    monkeypatch.setattr("parley.statistics.agreement.DRAWS", 500)
    assert 0.9 <= coverage(300, blocks, seed=7, rho=rho) <= 0.99
