"""What a resolved pair cost: the cost of all calls, divided by the pairs that were told apart or
shown to be equal."""

import sqlite3
from contextlib import closing

import pytest

import parley
from parley import Result
from parley.money import Price
from parley.report.page_options import PageOptions
from parley.report.run_page import render_run
from parley.results.parts.resolved_pairs import RolePairs

BOTS = {"a": "bot/altruist", "b": "bot/free-rider", "c": "bot/random", "d": "bot/random"}
DOLLAR = Price.flat(1000.0, 0.0, source="test")  # for a call of 1,000 tokens


def play(tmp_path, models=BOTS, **options):
    """A run of bots in which every call had 1,000 input tokens."""
    found = parley.run("public_goods", models, rounds=2, seed=3, store=tmp_path, **options)
    with closing(sqlite3.connect(found.path)) as connection:
        connection.execute("UPDATE calls SET tokens_in = 1000, tokens_out = 0")
        connection.commit()
    return found


def billed(found, prices):
    """The result as if its bots were models of a provider with these prices, by alias."""
    with closing(sqlite3.connect(found.path)) as connection:
        connection.execute("UPDATE runs SET config = replace(config, '\"bot/', '\"openai/')")
        connection.commit()
    return Result(found.ref, look_up=lambda alias, options, served, on: prices.get(alias))


def count_calls(found):
    return sum(row.calls for row in found.part("cost").cost)


def test_the_cost_of_all_calls_is_divided_by_the_resolved_pairs(tmp_path):
    played = play(tmp_path, plan="round_robin", repeats=6)
    result = billed(played, dict.fromkeys("abcd", DOLLAR))
    found = result.part("resolved_pairs")
    apart = [pair for pair in result.part("pairs") if pair.metric == found.roles[0].metric]
    different = sum(pair.p <= 0.05 for pair in apart)
    assert 0 < different < 6
    assert found.roles == (RolePairs("players", found.roles[0].metric, 6, different, 0),)
    assert found.usd == pytest.approx(count_calls(result))
    assert found.usd_per_pair == pytest.approx(count_calls(result) / different)
    line = f"resolved pairs: {different} of 6; USD per resolved pair: {found.usd_per_pair:,.2f}"
    assert line in result.render(width=200)
    assert line in result.render(part="pairs", width=200)
    assert line in result.render("markdown")
    assert line in result.render(part="resolved_pairs", width=200)
    assert result.data["resolved_pairs"]["usd_per_pair"] == found.usd_per_pair
    said = f"R{line[1:]}."
    page = render_run(result, PageOptions())
    card = page[page.index("<h2>Result</h2>") :]
    assert said in card[: card.index("</section>")]
    assert said in result._repr_html_()


def test_a_price_that_is_not_known_is_not_zero(tmp_path):
    """Calls are counted instead."""
    played = play(tmp_path, plan="round_robin", repeats=6)
    result = billed(played, dict.fromkeys("abc", DOLLAR))  # d has no price, as a local model
    found = result.part("resolved_pairs")
    assert (found.usd, found.usd_per_pair) == (None, None)
    assert found.calls_per_pair == pytest.approx(count_calls(result) / found.resolved)
    text = result.render(width=200)
    assert f"USD per resolved pair: not known; {found.calls_per_pair:,.1f} calls per pair" in text


def test_without_a_resolved_pair_there_is_no_quotient(tmp_path):
    models = {"c": "bot/random", "d": "bot/random"}
    played = play(tmp_path, models, plan="round_robin", repeats=2)
    result = billed(played, dict.fromkeys("cd", DOLLAR))
    found = result.part("resolved_pairs")
    assert (found.pairs, found.resolved) == (1, 0)
    assert (found.usd_per_pair, found.calls_per_pair) == (None, None)
    calls = count_calls(result)
    assert (
        f"resolved pairs: 0 of 1, so there is no cost per resolved pair ({calls:,.2f} USD for "
        f"{calls} calls)" in result.render(width=200)
    )


def test_bots_cost_nothing_and_have_no_line(tmp_path):
    played = play(tmp_path, plan="round_robin", repeats=3)
    found = played.part("resolved_pairs")
    assert (found.calls, found.usd, found.usd_per_pair) == (0, 0.0, None)
    assert "resolved pair" not in played.render()
    assert "nothing in this run is billed" in played.render(part="resolved_pairs")


def test_one_model_has_no_pairs(tmp_path):
    played = parley.run(
        "public_goods", {"a": "bot/altruist"}, plan="versus", adversary="bot/random", store=tmp_path
    )
    assert played.part("resolved_pairs") is None
    assert played.data["resolved_pairs"] is None


def test_a_race_also_resolves_pairs_as_equal_and_pays_for_unfinished_blocks(tmp_path):
    models = {"a": "bot/altruist", "b": "bot/altruist", "c": "bot/free-rider"}
    played = play(tmp_path, models, plan="race", half_width=6.0, max_calls=1500)
    result = billed(played, dict.fromkeys("abc", DOLLAR))
    (found,) = result.part("resolved_pairs").roles
    assert (found.pairs, found.different, found.equal) == (3, 2, 1)
    stopped = play(tmp_path, models, plan="race", half_width=6.0, max_calls=101, concurrency=1)
    assert stopped.state == "stopped"
    result = billed(stopped, dict.fromkeys("abc", DOLLAR))
    found = result.part("resolved_pairs")
    assert found.calls == count_calls(result) > sum(r.matches for r in result.part("results"))
    assert found.usd == pytest.approx(found.calls)
