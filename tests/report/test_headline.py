"""The first sentence of a report claims nothing that its intervals do not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley import run
from parley.report.headline import describe_role, write_headline
from parley.results.part import Style
from parley.results.types import ScoreRow
from parley.statistics.estimates import PairedDifference, Rank, rank_intervals


def row(alias, mean, low=None, high=None, matches=20, metric="payoff", unit="coins"):
    return ScoreRow(
        alias, alias, [], "players", metric, unit, mean, low, high,
        None, None, matches, matches, 0, 0, "signature",
    )  # fmt: skip


def rank(alias, low, high, metric="payoff"):
    return Rank("players", metric, alias, low, high)


def pair(a, b, difference, low, high, p, metric="payoff"):
    return PairedDifference("players", metric, a, b, difference, low, high, p, 20)


STYLE = Style(digits={"payoff": 1, "turns": 1}, lower_is_better=frozenset({"turns"}))


def test_a_clear_leader_with_its_lead_and_what_is_open_behind_it():
    rows = [row("a", 83.0, 82.3, 83.7), row("b", 57.1, 55.3, 58.9), row("c", 56.4, 56.1, 56.8)]
    ranks = [rank("a", 1, 1), rank("b", 2, 3), rank("c", 2, 3)]
    pairs = [
        pair("a", "b", 25.9, 23.4, 28.4, 0.001),
        pair("a", "c", 26.6, 26.1, 27.0, 0.001),
        pair("b", "c", 0.7, -1.1, 2.5, 0.4),
    ]
    assert describe_role(rows, ranks, pairs, STYLE) == [
        "a is first with 83.0 coins (95% interval 82.3 to 83.7), 25.9 more than b (23.4 to 28.4).",
        "b and c cannot be told apart.",
    ]


def test_a_tie_of_all_models_names_no_winner():
    rows = [row("a", 51.0, 48.0, 54.0), row("b", 50.0, 47.0, 53.0)]
    ranks = [rank("a", 1, 2), rank("b", 1, 2)]
    found = describe_role(rows, ranks, [pair("a", "b", 1.0, -3.0, 5.0, 0.6)], STYLE)
    assert found == ["a and b cannot be told apart after 20 matches each."]


def test_several_leaders_are_not_ordered():
    rows = [row("a", 51.0, 48.0, 54.0), row("b", 50.0, 47.0, 53.0), row("c", 10.0, 9.0, 11.0)]
    ranks = [rank("a", 1, 2), rank("b", 1, 2), rank("c", 3, 3)]
    found = describe_role(rows, ranks, [], STYLE)
    assert found == ["a and b lead and cannot be told apart after 20 matches each."]


def test_one_model_has_nobody_to_beat():
    found = describe_role([row("a", 3.0, 2.0, 4.0)], [rank("a", 1, 1)], [], STYLE)
    assert found == [
        "a scored 3.0 coins (95% interval 2.0 to 4.0) in 20 matches. There is no other model to "
        "compare with."
    ]


def test_a_model_without_a_score_is_named_and_never_zero():
    rows = [row("a", 3.0, 2.0, 4.0), row("b", None, matches=0)]
    found = describe_role(rows, [rank("a", 1, 1)], [], STYLE)
    assert found == [
        "a scored 3.0 coins (95% interval 2.0 to 4.0) in 20 matches. No other model has a score."
    ]
    rows = [row("a", 51.0, 48.0, 54.0), row("b", 50.0, 47.0, 53.0), row("c", None, matches=0)]
    found = describe_role(rows, [rank("a", 1, 2), rank("b", 1, 2)], [], STYLE)
    assert found[-1] == "c has no score."
    assert found[0] == "a and b cannot be told apart after 20 matches each."


def test_leaders_that_are_not_apart_from_the_others_do_not_lead():
    rows = [row("a", 51.0, 48.0, 54.0), row("b", 50.0, 46.0, 54.0), row("c", 44.0, 40.0, 48.0)]
    ranks = [rank("a", 1, 2), rank("b", 1, 3), rank("c", 2, 3)]  # only a is better than c
    assert describe_role(rows, ranks, [], STYLE) == [
        "a and b may be first and cannot be told apart after 20 matches each: no model is "
        "significantly better.",
        "The place of c is not settled.",
    ]


def test_a_lead_without_an_interval_has_no_size():
    rows = [row("a", 51.0), row("b", 50.0)]
    ranks = [rank("a", 1, 1), rank("b", 2, 2)]
    found = describe_role(rows, ranks, [pair("a", "b", 1.0, None, None, 0.03)], STYLE)
    assert found == ["a is first with 51.0 coins (no interval)."]
    exact = replace(STYLE, exact=True)
    found = describe_role(rows, ranks, [pair("a", "b", 1.0, None, None, None)], exact)
    assert found == ["a is first with 51.0 coins (exact for these prompts), 1.0 more than b."]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    return run(
        "public_goods",
        models={"a": "bot/random", "b": "bot/free-rider"},
        rounds=1,
        repeats=6,
        max_calls=5,
        concurrency=1,
        store=tmp_path_factory.mktemp("stopped"),
    )


def test_a_stopped_run_says_first_that_its_result_is_partial(stopped):
    assert stopped.state == "stopped"
    lines = write_headline(stopped)
    assert lines[0] == "This result is partial: 2 of 6 matches ended."
    assert len(lines) > 1


def test_a_run_that_is_done_says_nothing_about_its_state(tmp_path):
    models = {"a": "bot/altruist", "b": "bot/free-rider"}
    found = run("public_goods", models=models, rounds=1, repeats=2, store=tmp_path)
    assert not any("partial" in line for line in write_headline(found))


def test_lower_is_better_is_said():
    rows = [
        row("a", 2.0, 1.5, 2.5, metric="turns", unit=""),
        row("b", 4.0, 3.5, 4.5, metric="turns", unit=""),
    ]
    ranks = [rank("a", 1, 1, "turns"), rank("b", 2, 2, "turns")]
    found = describe_role(rows, ranks, [pair("a", "b", -2.0, -3.0, -1.0, 0.01, "turns")], STYLE)
    assert found == [
        "a is first with turns 2.0 (95% interval 1.5 to 2.5, lower is better), 2.0 less than b "
        "(1.0 to 3.0)."
    ]


def test_a_lead_whose_own_interval_contains_zero_has_no_size():
    rows = [row("a", 51.0, 48.0, 54.0), row("b", 50.0, 47.0, 53.0)]
    ranks = [rank("a", 1, 1), rank("b", 2, 2)]  # by a sign test
    found = describe_role(rows, ranks, [pair("a", "b", 1.0, -0.2, 2.2, 0.03)], STYLE)
    assert found == ["a is first with 51.0 coins (95% interval 48.0 to 54.0)."]


@given(
    st.lists(st.floats(0, 100), min_size=2, max_size=6, unique=True),
    st.lists(st.floats(0, 1), min_size=15, max_size=15),
)
def test_no_model_is_called_first_unless_its_rank_says_so(means, chances):
    aliases = [f"m{number}" for number in range(len(means))]
    pairs = [
        pair(a, b, means[i] - means[j], None, None, chances[(i * 5 + j) % 15])
        for i, a in enumerate(aliases)
        for j, b in enumerate(aliases)
        if i < j
    ]
    table = {
        ("payoff", "players", alias): {"x": mean}
        for alias, mean in zip(aliases, means, strict=True)
    }
    ranks = rank_intervals(table, pairs, frozenset())
    rows = [row(alias, mean) for alias, mean in zip(aliases, means, strict=True)]
    said = " ".join(describe_role(rows, ranks, pairs, STYLE))
    sure = [each.alias for each in ranks if each.low == each.high == 1]
    for alias in aliases:
        assert (f"{alias} is first" in said) <= (alias in sure)
    if " lead and " in said:  # every leader is surely better than every other model
        first = [each for each in ranks if each.low == 1]
        assert all(each.high <= len(first) for each in first)


@pytest.mark.parametrize("count", [4, 7])
def test_many_models_are_counted_not_listed(count):
    aliases = [f"m{number}" for number in range(count)]
    rows = [row(alias, 50.0, 40.0, 60.0) for alias in aliases]
    found = describe_role(rows, [rank(alias, 1, count) for alias in aliases], [], STYLE)
    assert found == [f"The {count} models cannot be told apart after 20 matches each."]
