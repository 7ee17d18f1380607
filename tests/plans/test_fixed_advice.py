"""Before a run until stable: whether a fixed number of blocks would be cheaper, with numbers."""

import re

import pytest

from parley.plans.stable import StableRule
from parley.plans.stop_targets import StopTarget
from parley.rules.task import Metric
from parley.statistics.stopping_rules import count_fixed_blocks
from parley.statistics.student_t import t_quantile


def advice(metric, items=0, target="new_items", most=1000, matches=2):
    rule = StableRule({"r": metric}, ["a", "b"], StopTarget(target=target), items)
    return [line for line in rule.cautions(most, matches) if "fixed number" in line]


def test_a_wide_range_with_little_scatter_is_cheaper_with_fixed_repeats():
    (line,) = advice(Metric("payoff", 0, 100, epsilon=1.5, unit="coins", spread=2))
    repeats, fixed, looking = map(
        int,
        re.search(r"--repeats (\d+) .* about (\d+) matches, .* about (\d+)\.", line).groups(),
    )
    half = t_quantile(1 - 0.025 / 2, repeats - 1) * 2 / repeats**0.5
    assert half <= 1.5 < half * 1.1
    assert fixed == 2 * repeats
    assert fixed < 0.7 * looking
    assert "(standard deviation 2) within their range (0 to 100)" in line


def test_what_cannot_be_reached_by_looking_is_said_to_take_more():
    (line,) = advice(Metric("payoff", 0, 1000, epsilon=1.5, spread=2), most=50)
    assert "--until-stable needs more than 100" in line


def test_with_items_the_advice_is_a_number_of_items_and_only_if_there_are_so_many():
    metric = Metric("score", 0, 100, epsilon=5, spread=10)
    (line,) = advice(metric, items=100, most=100)
    assert re.search(r"--items \d+ without", line)
    assert advice(metric, items=12, most=12) == []


def test_no_advice_where_a_fixed_number_saves_little():
    """So few blocks are needed that the first look, after 64 matches, already shows it."""
    assert advice(Metric("win", 0, 1, epsilon=0.2, spread=0.5), matches=20, most=40) == []


@pytest.mark.parametrize(("half_width", "spread"), [(1, 2), (0.1, 0.5), (5, 1)])
def test_the_number_of_fixed_blocks_is_the_smallest_that_is_enough(half_width, spread):
    n = count_fixed_blocks(half_width, spread, 0.05, 5000)

    def half(blocks):
        return t_quantile(0.975, blocks - 1) * spread / blocks**0.5

    assert half(n) <= half_width
    assert n == 2 or half(n - 1) > half_width
    assert count_fixed_blocks(half_width, spread, 0.05, n - 1) is None
