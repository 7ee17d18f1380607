"""Figures of bootstrap samples from the counts of blocks equal those of the rows."""

from collections import Counter
from functools import partial
from itertools import combinations
from random import Random
from statistics import fmean

import numpy as np
import pytest

from parley.statistics import block_draws
from parley.statistics.block_draws import (
    count_alpha,
    count_product_moment,
    count_rank_correlation,
    draw_block_counts,
    make_units,
    pair_rows,
)
from parley.statistics.correlation import product_moment, rank_correlation
from parley.statistics.score_table import mean_by_group


def alpha_of_units(units: list[tuple[float, ...]], level: str) -> float | None:
    """Krippendorff's alpha: 1 minus the disagreement within units, relative to the disagreement
    among all ratings."""
    totals: Counter[float] = Counter()
    clashes: dict[tuple[float, float], float] = {}
    for unit in units:
        counts = Counter(unit)
        totals.update(counts)
        for (c, a), (k, b) in combinations(counts.items(), 2):
            clashes[c, k] = clashes.get((c, k), 0.0) + a * b / (len(unit) - 1)
    if len(totals) < 2:
        return None
    n = totals.total()
    if level == "nominal":
        within = sum(clashes.values())
        chance = (n * n - sum(count * count for count in totals.values())) / 2
    else:
        spot, below = {}, 0.0
        for value in sorted(totals):
            spot[value] = below + totals[value] / 2 if level == "ordinal" else value
            below += totals[value]
        middle = sum(count * spot[value] for value, count in totals.items()) / n
        within = sum(weight * (spot[c] - spot[k]) ** 2 for (c, k), weight in clashes.items())
        chance = n * sum(count * (spot[value] - middle) ** 2 for value, count in totals.items())
    return 1 - (n - 1) * within / chance if chance > 0 else None


def block_rows(groups: list[list[tuple[float, ...]]]):
    """The rows of all groups, and the number of each row's group; rows are not in their order."""
    rows = [(at, row) for at, group in enumerate(groups) for row in group]
    Random(3).shuffle(rows)
    return make_units([row for _, row in rows]), np.array([at for at, _ in rows])


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


def make_ratings(rng: Random, values: int) -> list[list[tuple[float, ...]]]:
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
            (make_ratings, partial(alpha_of_units, level=level), partial(count_alpha, level=level))
            for level in ("nominal", "ordinal", "interval")
        ],
    ],
)
def test_figures_of_counts_equal_those_of_rows(make, plain, counted, values) -> None:
    for seed in range(20):
        groups = make(Random(seed), values)
        figure, rng = counted(*block_rows(groups)), Random(5)
        for counts in draw_block_counts(len(groups), 20, 5):
            drawn = rng.choices(groups, k=len(groups))
            wanted = plain([row for group in drawn for row in group])
            found = figure(counts)
            assert found == (None if wanted is None else pytest.approx(wanted, abs=1e-13))


def test_a_sample_that_varies_less_than_all_rows_keeps_its_digits() -> None:
    rng = Random(1)
    groups = [[(rng.random() + 1e6 * (n == 0), rng.random())] for n in range(6)]
    figure, draws = count_product_moment(*block_rows(groups)), Random(2)
    for counts in draw_block_counts(6, 200, 2):
        wanted = product_moment([row for group in draws.choices(groups, k=6) for row in group])
        assert figure(counts) == (None if wanted is None else pytest.approx(wanted, abs=1e-9))


def test_a_sample_of_equal_values_has_no_correlation() -> None:
    """Values that differ by less than their precision are equal, also far away from the mean."""
    groups = [[(1e6 + n * 1e-7, float(n))] for n in range(5)] + [[(0.0, 9.0)]]
    figure = count_product_moment(*block_rows(groups))
    for counts in ([3, 0, 0, 2, 1, 0], [6, 0, 0, 0, 0, 0], [0, 2, 2, 2, 0, 0]):
        assert figure(np.array(counts)) is None
    assert figure(np.array([1, 1, 1, 1, 1, 1])) == pytest.approx(
        product_moment([row for group in groups for row in group]), abs=1e-13
    )


def test_blocks_are_numbered_in_the_order_of_their_names() -> None:
    x, y, blocks = [1.0, 2.0, None, 4.0, 5.0], [5.0, None, 3.0, 2.0, 1.0], ["b", "b", "a", "a", "b"]
    rows, block = pair_rows(x, y, blocks)
    assert rows.tolist() == [[1, 5], [4, 2], [5, 1]]
    assert block.tolist() == [1, 0, 1]
    rows, block = pair_rows(np.array(x, dtype=float), y, np.array([7, 7, 3, 3, 7]))
    assert rows.tolist() == [[1, 5], [4, 2], [5, 1]]
    assert block.tolist() == [1, 0, 1]


def test_means_are_rounded_as_by_the_standard_library() -> None:
    rng = Random(4)
    groups = [[rng.random() for _ in range(rng.randint(1, 9))] for _ in range(2000)]
    values = np.array([value for group in groups for value in group])
    found = mean_by_group(values, np.array(list(map(len, groups))))
    assert found.tolist() == list(map(fmean, groups))


@pytest.mark.parametrize("most", [0, 20_000_000])
def test_draws_are_those_of_the_standard_library(most, monkeypatch) -> None:
    monkeypatch.setattr(block_draws, "LARGEST_SAMPLES", most)  # of samples that are kept
    rng = Random(3)
    for counts in draw_block_counts(9, 50, 3):
        drawn = rng.choices(range(9), k=9)
        assert counts.tolist() == [drawn.count(block) for block in range(9)]
