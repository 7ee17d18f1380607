"""Kappa, alpha and judges against themselves: published values, values of other packages,
properties, simulation."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import UsageError
from parley.statistics.agreement import (
    block_bootstrap_interval,
    cohen_kappa,
    krippendorff_alpha,
)
from parley.statistics.judge_bias import Judgement, self_preference

NA = None
WEIGHTS = ("none", "linear", "quadratic")
LEVELS = ("nominal", "ordinal", "interval")
# Two raters' cases, and kappa by weights. Boyd's three values are as printed in Stata's manual; of
# the others the first is printed, and scikit-learn gives the rest.
TABLES = {
    "Boyd 1982, mammograms": (
        [[21, 12, 0, 0], [4, 17, 1, 0], [3, 9, 15, 2], [0, 0, 0, 1]],
        (0.4728, 0.5684, 0.6714),
    ),
    "Fleiss, Levin, Paik 2003, diagnoses": (
        [[75, 1, 4], [5, 4, 1], [0, 0, 10]],
        (0.6765, 0.7222, 0.7553),
    ),
    "Cohen 1968, diagnoses": ([[44, 5, 1], [7, 20, 3], [9, 5, 6]], (0.4915, 0.4737, 0.4545)),
}
# Krippendorff's worked example, by coder.
WORKED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NA, NA, NA],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NA, 3],
    [NA, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NA],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NA],
]
# Three judges of twenty dialogues.
TEN = range(1, 11)
FIRST = [7, 8, 6, 9, 5, 7, 8, 4, 6, 7, 9, 3, 7, 8, 5, 6, 10, 7, 6, 8]
SECOND = [6, 8, 7, 9, 4, 7, 9, 5, 6, 8, 8, 2, 7, 7, 5, 7, 10, 6, 4, 8]
THIRD = [8, 8, 6, 10, 5, 6, NA, 4, 7, 7, 9, NA, 8, 8, 6, 6, 9, 7, NA, 7]
ITEMS = [f"item {n:02}" for n in range(20)]

columns = st.lists(st.tuples(*[st.sampled_from([1, 2, 3, 4, NA])] * 3), max_size=12)


def units(*raters):
    return list(zip(*raters, strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_kappa_of_printed_tables(name):
    table, wanted = TABLES[name]
    cases = [
        (i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)
    ]
    found = [
        cohen_kappa(*zip(*cases, strict=True), range(len(table)), weights).value
        for weights in WEIGHTS
    ]
    assert found == pytest.approx(wanted, abs=5e-5)


def test_kappa_counts_categories_that_nobody_used():
    found = [cohen_kappa(FIRST, SECOND, TEN, weights).value for weights in WEIGHTS]
    assert found == pytest.approx([2 / 7, 0.675, 0.8847926267281107])
    wide = cohen_kappa(
        ["poor", "good", "poor"], ["poor", "good", "good"], ["poor", "fair", "good"], "quadratic"
    )
    assert wide.value == pytest.approx(0.4)


def test_alpha_of_krippendorffs_example():
    found = [krippendorff_alpha(units(*WORKED), level) for level in LEVELS]
    assert [one.value for one in found] == pytest.approx([0.743, 0.815, 0.849], abs=5e-4)
    assert [one.value for one in found] == pytest.approx(
        [0.743421052631579, 0.8153875037548814, 0.8491071428571428]
    )
    assert {(one.n, one.dropped) for one in found} == {(11, 1)}


def test_alpha_of_three_judges_with_gaps():
    found = [krippendorff_alpha(units(FIRST, SECOND, THIRD), level).value for level in LEVELS]
    assert found == pytest.approx([0.19111111111111112, 0.8412805970535538, 0.8609559279950341])


def test_missing_ratings_are_dropped_in_pairs_and_counted():
    found = cohen_kappa(FIRST, THIRD, TEN)
    assert (found.n, found.dropped) == (17, 3)
    kept = [(a, b) for a, b in zip(FIRST, THIRD, strict=True) if b is not None]
    assert found.value == cohen_kappa(*zip(*kept, strict=True), TEN).value


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], []),
        ([NA, 1], [1, NA]),
        ([2, 2, 2], [2, 2, 2]),
        ([1, NA, 3], [1, 2, NA]),
    ],
    ids=["nothing", "never both", "one category", "one pair left"],
)
def test_what_ratings_cannot_tell_is_unknown(first, second):
    blocks = [str(n) for n in range(len(first))]
    for weights in WEIGHTS:
        found = cohen_kappa(first, second, [1, 2, 3], weights, blocks)
        assert (found.value, found.interval) == (None, (None, None, None))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    ("first", "second"), [([2, 2, 2], [1, 2, 3]), ([1, 2, 3], [3, 3, 3]), ([1], [2])]
)
def test_kappa_with_a_constant_rater_is_zero(first, second, weights):
    """Chance agrees as often: 1 − observed / expected cost, which are the same."""
    assert cohen_kappa(first, second, [1, 2, 3], weights).value == 0


def test_kappa_of_a_constant_rater_has_an_interval_that_holds_zero():
    blocks = [str(n) for n in range(12)]
    found = cohen_kappa([1] * 12, [1, 2] * 6, [1, 2], "none", blocks)
    assert found.value == 0
    assert found.interval.low <= 0 <= found.interval.high


@pytest.mark.parametrize("rows", [[], [[NA, NA]], [[1, NA], [NA, 2]], [[3, 3, 3], [3, 3, NA]]])
def test_alpha_without_pairs_or_with_one_value_is_unknown(rows):
    for level in LEVELS:
        assert krippendorff_alpha(rows, level).value is None
    assert krippendorff_alpha([[0, 1e-200]], "interval").value is None


def test_alpha_knows_a_single_constant_rater():
    """Chance comes from all ratings: 5 and 1 of two values; by hand 1 − 5 · 1 / 5."""
    assert krippendorff_alpha(units([2, 2, 2], [1, 2, 2]), "nominal").value == pytest.approx(0)


def test_mistakes_are_explained():
    with pytest.raises(UsageError, match=r"not 11; use None"):
        cohen_kappa([11], [1], TEN)
    with pytest.raises(UsageError, match="did you mean 'linear'"):
        cohen_kappa([1], [1], TEN, "lineal")
    with pytest.raises(UsageError, match="unknown level 'ratio'"):
        krippendorff_alpha([[1, 1]], "ratio")
    with pytest.raises(ValueError, match="shorter"):
        cohen_kappa([1, 2], [1], TEN)


@given(columns, st.sampled_from(WEIGHTS))
def test_kappa_is_symmetric_and_at_most_one(rows, weights):
    first, second = [a for a, _, _ in rows], [b for _, b, _ in rows]
    found = cohen_kappa(first, second, [1, 2, 3, 4], weights)
    assert found.value == pytest.approx(cohen_kappa(second, first, [1, 2, 3, 4], weights).value)
    assert found.value == pytest.approx(cohen_kappa(first, second, [4, 3, 2, 1], weights).value)
    assert found.value is None or found.value <= 1
    alike = cohen_kappa(first, first, [1, 2, 3, 4], weights)
    assert alike.value == (1 if len(set(first) - {NA}) > 1 else None)


@given(
    columns, st.permutations(range(3)), st.sampled_from(LEVELS), st.randoms(use_true_random=False)
)
def test_alpha_does_not_ask_who_rated_or_in_what_order(rows, order, level, rng):
    found = krippendorff_alpha(rows, level).value
    moved = [[row[place] for place in order] for row in rows]
    rng.shuffle(moved)
    assert found == pytest.approx(krippendorff_alpha(moved, level).value)
    assert found is None or found <= 1
    alike = [[row[0]] * 3 for row in rows]
    assert krippendorff_alpha(alike, level).value == (
        1 if len({row[0] for row in rows} - {NA}) > 1 else None
    )


@given(columns)
def test_alpha_changes_only_with_what_its_level_sees(rows):
    def moved(change):
        return [[NA if value is NA else change(value) for value in row] for row in rows]

    for level, change in [
        ("nominal", lambda v: (v * 3) % 5),
        ("ordinal", lambda v: v**3),
        ("interval", lambda v: 7 - 2 * v),
    ]:
        assert krippendorff_alpha(rows, level).value == pytest.approx(
            krippendorff_alpha(moved(change), level).value
        )


def test_intervals_are_the_same_each_time_and_in_any_order():
    found = cohen_kappa(FIRST, SECOND, TEN, blocks=ITEMS)
    assert found.interval.kind == "block bootstrap"
    assert 0.5 < found.interval.low < found.value < found.interval.high < 1
    assert (found.n, found.blocks) == (20, 20)
    order = Random(1).sample(range(20), 20)
    moved = [[column[place] for place in order] for column in (FIRST, SECOND, ITEMS)]
    assert cohen_kappa(*moved[:2], TEN, blocks=moved[2]) == found
    assert cohen_kappa(FIRST, SECOND, TEN).interval == (None, None, None)  # all one block


def test_more_ratings_of_the_same_item_make_no_interval_narrower():
    once = cohen_kappa(FIRST, SECOND, TEN, blocks=ITEMS)
    often = cohen_kappa(FIRST * 12, SECOND * 12, TEN, blocks=ITEMS * 12)
    assert often.interval.low == pytest.approx(once.interval.low)
    assert often.interval.high == pytest.approx(once.interval.high)
    assert (often.n, often.blocks) == (240, 20)
    alpha = krippendorff_alpha(units(FIRST, SECOND, THIRD) * 12, "interval", ITEMS * 12)
    assert alpha.interval.low < 0.8 < alpha.interval.high


def test_perfect_agreement_has_an_interval_too():
    for found in (
        cohen_kappa(FIRST, FIRST, TEN, blocks=ITEMS),
        krippendorff_alpha(units(FIRST, FIRST), "ordinal", ITEMS),
    ):
        assert (found.value, found.interval.kind, found.interval.high) == (1, "bounded", 1)
        assert found.interval.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 20)))


def test_draws_that_know_nothing_count_against_both_ends():
    """One dissent in twenty: a third of all draws miss it, and then there is but one category."""
    assert cohen_kappa([1] * 19 + [2], [1] * 19 + [2], [1, 2], blocks=ITEMS).interval == (
        None,
        None,
        None,
    )
    # too few blocks
    assert block_bootstrap_interval([1, 2, 3, 4], lambda drawn: sum(drawn) / 40).kind is None
    assert (
        block_bootstrap_interval([1, 2, 3, 4, 5], lambda drawn: sum(drawn) / 50).kind
        == "block bootstrap"
    )


def scores(rng, liking, judges="abc", models="abc", blocks=15, noise=0.5):
    """Every judge on every model; judges differ in strictness, models in quality, and each likes
    its own by so much."""
    strict, quality = {"a": 0.7, "b": 0.0, "c": -0.4}, {"a": 5.0, "b": 6.0, "c": 4.0, "d": 5.5}
    for block in range(blocks):
        luck = {model: rng.gauss(0, 1) for model in models}
        for judge in judges:
            for model in models:
                value = (
                    quality[model] + luck[model] - strict[judge] + liking[judge] * (judge == model)
                )
                yield Judgement(str(block), judge, model, value + rng.gauss(0, noise))


OWN = {"a": "a", "b": "b", "c": "c"}
LIKING = {"a": 1.5, "b": 0.0, "c": 0.6}


def test_self_preference_is_told_from_strictness_and_quality():
    for judge, liking in LIKING.items():
        exact = self_preference(scores(Random(3), LIKING, noise=0), judge, OWN, (1, 10))
        assert (exact.value, exact.blocks, exact.n) == (pytest.approx(liking), 15, 30)
        noisy = self_preference(scores(Random(3), LIKING), judge, OWN, (1, 10))
        assert noisy.interval.low < liking < noisy.interval.high
    # a third model that belongs to neither judge is enough
    third = self_preference(
        scores(Random(3), LIKING, judges="ab", models="abd", noise=0), "a", OWN, (1, 10)
    )
    assert third.value == pytest.approx(1.5)


def test_self_preference_is_unknown_where_the_design_does_not_allow_it():
    def found(judge="a", own=OWN, **design):
        return self_preference(scores(Random(3), LIKING, **design), judge, own, (1, 10))

    for unknown in (
        found(judges="ab", models="ab"),  # the only other judge is the other model's own
        found(judges="a"),
        found(models="a"),
        found(models="bc"),
        found(own={"b": "b"}),
        found(judge="nobody"),
        self_preference([], "a", OWN, (1, 10)),
    ):
        assert (unknown.value, unknown.interval, unknown.n, unknown.blocks) == (
            None,
            (None, None, None),
            0,
            0,
        )
    missing = [
        row._replace(value=None) if row.judge == "b" else row
        for row in scores(Random(3), LIKING, noise=0)
    ]
    partly = self_preference(missing, "a", OWN, (1, 10))
    assert (partly.value, partly.n, partly.dropped) == (pytest.approx(1.5), 15, 45)


def test_self_preference_that_is_not_there_is_rarely_found():
    rng, wrong, runs = Random(4), 0, 300
    for _ in range(runs):
        found = self_preference(scores(rng, dict.fromkeys("abc", 0.0)), "a", OWN, (1, 10)).interval
        wrong += not found.low <= 0 <= found.high
    assert 0.02 <= wrong / runs <= 0.08


@pytest.mark.slow
def test_the_interval_of_kappa_covers_under_clustering():
    """Six ratings a block that share the block's difficulty, on a scale of five; the truth from a
    very large sample."""

    def sample(rng, blocks):
        for block in range(blocks):
            hard = rng.choice([0.3, 1.2])
            for _ in range(6):
                truth = rng.gauss(3, 1)
                yield (
                    *(min(5, max(1, round(truth + rng.gauss(0, hard)))) for _ in "ab"),
                    f"{block:05}",
                )

    def kappa(rng, blocks, named=True):
        first, second, names = zip(*sample(rng, blocks), strict=True)
        return cohen_kappa(first, second, range(1, 6), blocks=names if named else None)

    rng, hits, runs = Random(5), 0, 200
    truth = kappa(rng, 20000, named=False).value
    for _ in range(runs):
        found = kappa(rng, 15).interval
        hits += found.low <= truth <= found.high
    assert 0.9 <= hits / runs <= 0.99
