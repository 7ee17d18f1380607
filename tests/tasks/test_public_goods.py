"""The public goods game: payoffs, both modes, bounds, warnings, bots."""

from itertools import pairwise
from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley import Seat, UsageError
from parley.match.record import MemoryRecord
from parley.participants._registry import make_participant
from parley.participants.scripted import Scripted
from parley.results.scores import RunScores
from parley.store import read_run
from parley.tasks.public_goods.rule import PublicGoods, pool_share
from parley.testing import ByHand, play

FIGURES_7_AND_8 = {  # investments read off DynaEval's figures, by player
    "GPT-4": (5, 6, 7, 8, 10),
    "PaLM": (5, 10, 8, 9, 10),
    "Claude 2": (5, 7, 8, 9, 10),
    "ChatGPT": (5, 10, 6, 8, 10),
}


def seats(n):
    return [Seat("players", number) for number in range(1, n + 1)]


def test_the_papers_case_pays_as_its_figures_tell():
    cast = {
        seat: Scripted([str(x) for x in paid])
        for seat, paid in zip(seats(4), FIGURES_7_AND_8.values(), strict=True)
    }
    outcome = play(PublicGoods(), cast)
    payoffs = [round(by["payoff"], 6) for by in outcome.scores.values()]
    assert payoffs == [60.8, 54.8, 57.8, 57.8]


def test_the_share_is_by_the_number_of_players_not_by_four():
    assert pool_share([50, 50, 0], 1.2) == pytest.approx(40)


def test_income_is_told_to_everybody_in_mode_1():
    game = ByHand(PublicGoods(rounds=2), players=3)
    a, b, c = seats(3)
    game.answer({a: 10, b: 0, c: 5})
    assert all("paid you 6 coins" in game.pool.conversations[s].waiting[-1] for s in (a, b, c))


def test_investments_are_told_in_descending_order_without_names_in_mode_2():
    game = ByHand(PublicGoods(rounds=2, feedback="investments"), players=3)
    a, b, c = seats(3)
    game.answer({a: 2, b: 10, c: 5.5})
    assert (
        game.told(a)[-1]
        == game.told(b)[-1]
        == "In the last round the players invested [10, 5.5, 2] coins."
    )
    assert "Player" not in game.told(a)[-1]


def test_every_round_is_asked_of_all_players_at_once():
    game = ByHand(PublicGoods(rounds=3), players=4)
    for _ in range(3):
        assert list(game.asked.seats) == seats(4)
        game.answer(4)
    assert game.asked is None
    assert game.scores == {seat: {"payoff": pytest.approx(3 * (10 - 4 + 4.8))} for seat in seats(4)}


def test_whole_and_fractional_coins_are_both_read():
    cast = {
        seats(2)[0]: Scripted(['{"reason": "r", "coins": 2.5}']),
        seats(2)[1]: Scripted(['{"reason": "r", "coins": 4}']),
    }
    outcome = play(PublicGoods(rounds=1), cast)
    assert [by["payoff"] for by in outcome.scores.values()] == [
        pytest.approx(10 - 2.5 + 3.9),
        pytest.approx(10 - 4 + 3.9),
    ]


def test_nonsense_loses_the_coins_of_the_round_and_is_recorded():
    one, two = seats(2)
    outcome = play(PublicGoods(rounds=1), {one: Scripted(["all of them!"]), two: Scripted(["10"])})
    assert outcome.scores == {one: {"payoff": 6.0}, two: {"payoff": 6.0}}
    assert [v.kind for v in outcome.violations if v.seat == one] == ["unreadable"] * 3
    assert [v.outcome for v in outcome.violations] == ["asked again", "asked again", "default"]


@pytest.mark.parametrize("words", ["-1", "10.01", '{"coins": 1e9}'])
def test_investments_outside_the_bounds_are_not_accepted(words):
    one, two = seats(2)
    outcome = play(PublicGoods(rounds=1), {one: Scripted([words, "3"]), two: Scripted(["10"])})
    assert [v.kind for v in outcome.violations] == ["out_of_bounds"]
    assert outcome.scores[one]["payoff"] == pytest.approx(7 + 7.8)


@given(
    n=st.integers(2, 10),
    alpha=st.floats(0, 20),
    rounds=st.integers(1, 4),
    data=st.data(),
)
def test_payoffs_are_the_papers_sum_and_stay_in_the_declared_range(n, alpha, rounds, data):
    task = PublicGoods(rounds=rounds, multiplier=alpha)
    game = ByHand(task, players=n)
    expected = dict.fromkeys(seats(n), 0.0)
    for _ in range(rounds):
        paid = {seat: data.draw(st.one_of(st.none(), st.floats(0, 10))) for seat in seats(n)}
        total = sum(x or 0 for x in paid.values())
        for seat, x in paid.items():
            expected[seat] += (0 if x is None else 10 - x) + alpha * total / n
        game.answer(paid)
    assert game.scores is not None  # and no score was refused as out of range
    for seat in seats(n):
        assert game.scores[seat]["payoff"] == pytest.approx(expected[seat], abs=1e-6)


def test_a_game_that_is_no_dilemma_is_warned_about():
    assert list(PublicGoods(multiplier=1.2).cautions({"players": 2})) == []
    assert "dilemma" in next(iter(PublicGoods(multiplier=1).cautions({"players": 2})))
    assert "dilemma" in next(iter(PublicGoods(multiplier=4).cautions({"players": 4})))


@pytest.mark.parametrize(
    "wrong",
    [{"rounds": 0}, {"endowment": 0}, {"multiplier": -1}, {"rounds": "five"}, {"feedback": "none"}],
)
def test_parameters_outside_their_limits_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        PublicGoods.from_params(wrong)


@pytest.mark.parametrize("feedback", ["income", "investments"])
def test_bots_play_as_their_names_say(feedback):
    task = PublicGoods(feedback=feedback)
    names = ["free-rider", "altruist", "gradual", "reciprocator", "random"]
    cast = {
        seat: make_participant(f"bot/{name}", {}, PublicGoods, name)
        for seat, name in zip(seats(5), names, strict=True)
    }
    outcome = play(task, cast, seed=7)
    paid = [list(note.facts["invested"].values()) for note in outcome.notes]
    assert [row[0] for row in paid] == [0] * 5
    assert [row[1] for row in paid] == [10] * 5
    assert [row[2] for row in paid] == [5, 6, 7, 8, 9]
    for before, now in pairwise(paid):
        assert now[3] == pytest.approx(sum(before) / 5, abs=0.01)
    assert len({row[4] for row in paid}) > 1
    assert not outcome.violations


def test_bots_depend_on_seed_seat_and_round_only():
    def once(seed):
        cast = {seat: make_participant("bot/random", {}, PublicGoods, "x") for seat in seats(3)}
        tape = MemoryRecord()
        play(PublicGoods(), cast, seed=seed, record=tape)
        return {key: call.reply.content for key, call in tape.calls.items()}

    assert once(1) == once(1)
    assert once(1) != once(2)


def test_payments_by_round_leave_out_what_could_not_be_read(tmp_path):
    def silent(view):
        return "2" if view.round == 1 else "no number"

    models = {"rising": "bot/gradual", "silent": silent}
    found = parley.run("public_goods", models, rounds=3, repeats=3, store=tmp_path)
    payments = found.part("payments")
    by = {(row.alias, row.round): row for row in payments}
    assert [by["rising", number].mean for number in (1, 2, 3)] == [5, 6, 7]
    assert by["silent", 1].mean == 2
    assert (by["silent", 2].mean, by["silent", 2].missing) == (None, 3)
    (lines,) = found.figures("payments")
    assert {series.label: series.y for series in lines.series} == {
        "rising": (5, 6, 7),
        "silent": (2, None, None),
    }


def test_payoffs_of_all_matches_are_drawn_with_their_quartiles(tmp_path):
    models = ["bot/free-rider", "bot/altruist"]
    found = parley.run("public_goods", models, repeats=3, store=tmp_path)
    (boxes,) = found.figures("payoffs")
    assert [box.label for box in boxes.boxes] == ["free-rider", "altruist"]  # the highest first
    assert boxes.boxes[0].dots == (80.0, 80.0, 80.0)  # 50 kept, and half of 5 · 12 received
    assert boxes.boxes[0].first_quartile == boxes.boxes[0].third_quartile == 80.0


def test_payoffs_are_those_of_the_scores(tmp_path):
    """Spreads are computed from columns of scores: the same numbers as from single scores."""
    models = ["bot/free-rider", "bot/random", "bot/gradual"]
    found = parley.run("public_goods", models, plan="cycles", seats=2, repeats=9, store=tmp_path)
    spreads = {spread.alias: spread for spread in found.part("payoffs")}
    with read_run(found.ref) as reader:
        scores = list(RunScores(reader).observations)
    assert len(spreads) == 3
    for alias, spread in spreads.items():
        values = [score.value for score in scores if score.alias == alias]
        assert (spread.matches, spread.missing) == (len(values), 0)
        assert spread.payoffs == tuple(values)
        assert (spread.low, spread.high) == (min(values), max(values))
        quartiles = quantiles(values, n=4, method="inclusive")
        assert [spread.first_quartile, spread.median, spread.third_quartile] == quartiles
