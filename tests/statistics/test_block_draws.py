"""Figures of bootstrap samples from the counts of blocks equal those of the rows."""

from functools import partial
from random import Random

import pytest

from parley.statistics.agreement import alpha_of_units
from parley.statistics.block_draws import (
    count_alpha,
    count_product_moment,
    count_rank_correlation,
    draw_block_counts,
)
from parley.statistics.correlation import product_moment, rank_correlation


def make_pairs(rng: Random, values: int) -> list[list[tuple[float, float]]]:
    return [
        [(rng.randrange(values) / 7, rng.randrange(values) / 3) for _ in range(rng.randint(1, 4))]
        for _ in range(12)
    ]


def make_many_pairs(rng: Random, values: int) -> list[list[tuple[float, float]]]:
    """So many different blocks that their ranks are not added up by kind of block."""
    return [[(rng.randrange(values), rng.randrange(values)) for _ in range(2)] for _ in range(60)]


def make_equal_blocks(rng: Random, values: int) -> list[list[tuple[float, float]]]:
    blocks = [[(rng.randrange(values), rng.randrange(values)) for _ in range(3)] for _ in range(3)]
    return [rng.choice(blocks) for _ in range(60)]


def make_units(rng: Random, values: int) -> list[list[tuple[float, ...]]]:
    return [
        [
            tuple(sorted(rng.randrange(values) / 2 for _ in range(rng.randint(2, 4))))
            for _ in range(rng.randint(1, 3))
        ]
        for _ in range(12)
    ]


@pytest.mark.parametrize("values", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    ("make", "plain", "counted"),
    [
        (make_pairs, product_moment, count_product_moment),
        (make_pairs, rank_correlation, count_rank_correlation),
        (make_many_pairs, rank_correlation, count_rank_correlation),
        (make_equal_blocks, rank_correlation, count_rank_correlation),
        *[
            (make_units, partial(alpha_of_units, level=level), partial(count_alpha, level=level))
            for level in ("nominal", "ordinal", "interval")
        ],
    ],
)
def test_figures_of_counts_equal_those_of_rows(make, plain, counted, values) -> None:
    for seed in range(20):
        groups = make(Random(seed), values)
        figure, rng = counted(groups), Random(5)
        for counts in draw_block_counts(len(groups), 20, 5):
            drawn = rng.choices(groups, k=len(groups))
            wanted = plain([row for group in drawn for row in group])
            found = figure(counts)
            assert found == (None if wanted is None else pytest.approx(wanted, abs=1e-13))


def test_a_sample_that_varies_less_than_all_rows_keeps_its_digits() -> None:
    rng = Random(1)
    groups = [[(rng.random() + 1e6 * (n == 0), rng.random())] for n in range(6)]
    figure, draws = count_product_moment(groups), Random(2)
    for counts in draw_block_counts(6, 200, 2):
        wanted = product_moment([row for group in draws.choices(groups, k=6) for row in group])
        assert figure(counts) == (None if wanted is None else pytest.approx(wanted, abs=1e-9))


def test_draws_are_those_of_the_standard_library() -> None:
    rng = Random(3)
    for counts in draw_block_counts(9, 50, 3):
        drawn = rng.choices(range(9), k=9)
        assert counts.tolist() == [drawn.count(block) for block in range(9)]
