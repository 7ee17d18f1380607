"""Planted abilities are found, equals stay equal, and a check that should fail does."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from parley import Choice, Items, Metric, Role, Task, UsageError
from parley.config.task_catalogue import task_class
from parley.statistics import estimates
from parley.tasks.public_goods import PublicGoods
from parley.testing import check_planted

ANSWERS = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Question:
    id: str
    answer: str


QUESTIONS = [Question(str(number), ANSWERS[number % 4]) for number in range(30)]


@dataclass(frozen=True)
class Quiz(Task):
    """One pupil, one question; bots know the answer so often."""

    roles = {"pupil": Role(), "proctor": Role(0, 1, instrument=True)}
    items = Items(Question)

    async def play(self, referee, pupil, proctor):
        said = await referee.ask(pupil, "Which?", expect=Choice("which", ANSWERS), default=None)
        if (
            proctor
            and await referee.ask(proctor, "Does it count?", expect=Choice("count", ("yes", "no")))
            == "no"
        ):
            return {}
        return {
            pupil: {"right": said == referee.item.answer, "misses": said != referee.item.answer}
        }

    def metrics(self, seats):
        return [
            Metric("right", 0, 1, epsilon=0.1),
            Metric("misses", 0, 1, epsilon=0.1, better="lower"),
        ]


def pupil(bot, strength: float = 0.5):
    wrong = next(answer for answer in ANSWERS if answer != bot.item.answer)
    return bot.item.answer if bot.rng.random() < strength else wrong


Quiz.bots = {"pupil": pupil, "strict": lambda bot: "no"}


@dataclass(frozen=True)
class Hunt(Task):
    """A strong seeker finds more; hiders are all alike."""

    roles = {"seeker": Role(), "hider": Role()}

    async def play(self, referee, seeker, hider):
        place = await referee.ask(hider, "Where?", expect=Choice("place", ANSWERS), default="a")
        looked = await referee.ask(
            seeker, f"Look {place}?", expect=Choice("looked", ("yes", "no")), default="no"
        )
        lucky = referee.rng.random() < 0.5
        return {seeker: 1 if looked == "yes" else 0, hider: 1 if lucky else 0}

    def metrics(self, seats):
        return [Metric("points", 0, 1, epsilon=0.1)]


def hunter(bot, strength: float = 0.5):
    if bot.view.seat.role == "hider":
        return "a"
    return "yes" if bot.rng.random() < strength else "no"


Hunt.bots = {"hunter": hunter}


def test_public_goods_pays_those_who_pay_less():
    """Everybody gets the same from the pool, so payoffs differ by exactly what was paid in: the
    free-rider is best."""
    order = [["bot/free-rider", "bot/free-rider"], ["bot/random", "bot/random"], "bot/altruist"]
    found = check_planted(PublicGoods(rounds=1), order)
    truths = {row[1]: row for row in found.rows}
    assert truths["free-rider > altruist"][2] == "100.0%"
    assert truths["free-rider > altruist"][4] == "10.00"
    assert truths["free-rider = free-rider (2)"][3] == "0.0%"
    assert 0 < float(truths["random = random (2)"][3].rstrip("%")) <= 10


def test_abilities_are_planted_by_options():
    order = [
        "bot/pupil:strength=0.9",
        ["bot/pupil:strength=0.5", {"model": "bot/pupil", "strength": 0.5}],
        "bot/pupil:strength=0.1",
    ]
    found = check_planted(Quiz(), order, items=QUESTIONS, runs=50)
    assert str(found) == str(check_planted(Quiz(), order, items=QUESTIONS, runs=50))
    # equals have luck of their own
    assert {row[3] for row in found.rows if "=0.5 = " in row[1]} != {"0.0%"}
    check_planted(Quiz(), order, items=QUESTIONS, runs=50, metric="misses")


def test_a_role_can_be_looked_at_alone():
    order = ["bot/hunter:strength=0.9", "bot/hunter:strength=0.2"]
    check_planted(Hunt(), order, runs=50, only="seeker")
    with pytest.raises(AssertionError, match=r"\(hider\): not found even when all runs are pooled"):
        check_planted(Hunt(), order, runs=50)


def test_the_wrong_order_is_refused_with_a_table():
    with pytest.raises(
        AssertionError, match=r"100\.0% of the runs found the opposite order"
    ) as wrong:
        check_planted(
            PublicGoods(rounds=1), ["bot/altruist", "bot/random", "bot/free-rider"], runs=50
        )
    assert (
        "altruist > free-rider (players): not found even when all runs are pooled (difference -10"
        in str(wrong.value)
    )
    assert "p (all runs)" in str(wrong.value)


def test_equals_that_are_not_are_refused():
    with pytest.raises(AssertionError, match=r"100\.0% of the runs found a difference"):
        check_planted(PublicGoods(rounds=1), [["bot/free-rider", "bot/random"]], runs=50)


def test_what_is_never_scored_is_not_passed():
    order = ["bot/pupil:strength=0.9", "bot/pupil:strength=0.1"]
    with pytest.raises(AssertionError, match="were never scored in the same block and role"):
        check_planted(Quiz(), order, items=QUESTIONS, runs=2, roles={"proctor": ["bot/strict"]})


def declaring(share):
    """A broken statistic: of equals it declares this share different."""
    sound = estimates.compare_models

    def broken(table, bounds):
        return [
            replace(pair, p=None if pair.p is None else pair.p * 0.05 / share)
            for pair in sound(table, bounds)
        ]

    return broken


def test_a_statistic_that_declares_15_percent_of_equals_different_is_caught(monkeypatch):
    check_planted(PublicGoods(rounds=1), [["bot/random", "bot/random"]])
    monkeypatch.setattr(estimates, "compare_models", declaring(0.15))
    with pytest.raises(
        AssertionError,
        match=r"random = random \(2\) \(players\): 1\d.* of the runs found a difference",
    ):
        check_planted(PublicGoods(rounds=1), [["bot/random", "bot/random"]])


@pytest.mark.parametrize(
    ("order", "options", "wanted"),
    [
        (["bot/free-rider"], {}, "at least two bots"),
        (["bot/free-rider", "vllm/some-model"], {}, "only bots"),
        (["bot/free-rider", "bot/free-rder"], {}, "did you mean 'free-rider'"),
        (["bot/free-rider", "bot/altruist:strength=1"], {}, "strength"),
        (["bot/free-rider", "bot/altruist"], {"metric": "pay"}, "did you mean 'payoff'"),
        (["bot/free-rider", "bot/altruist"], {"only": "player"}, "did you mean 'players'"),
    ],
)
def test_mistakes_are_explained(order, options, wanted):
    with pytest.raises(UsageError, match=wanted):
        check_planted(PublicGoods(), order, **options)


@pytest.mark.slow
@pytest.mark.parametrize("feedback", ["income", "investments"])
def test_all_bots_of_public_goods_stand_in_their_order(feedback):
    """On average a random player pays 5 coins a round, a reciprocator a little more as gradual
    players raise the average."""
    order = [
        "bot/free-rider",
        ["bot/random", "bot/random"],
        "bot/reciprocator",
        "bot/gradual",
        "bot/altruist",
    ]
    check_planted(PublicGoods(feedback=feedback), order)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1000, 2000, 3000])
def test_the_check_itself_is_neither_flaky_nor_blind(seed, monkeypatch):
    order = ["bot/free-rider", ["bot/random", "bot/random", "bot/random"], "bot/altruist"]
    check_planted(PublicGoods(rounds=2), order, seed=seed)
    monkeypatch.setattr(estimates, "compare_models", declaring(0.15))
    with pytest.raises(AssertionError, match="of the runs found a difference"):
        check_planted(PublicGoods(rounds=2), order, seed=seed)


@pytest.mark.slow
def test_a_duel_is_held_in_both_orders():
    dilemma = task_class(str(Path(__file__).parents[2] / "examples" / "prisoners_dilemma.py"))
    check_planted(dilemma(), ["bot/defector", ["bot/random", "bot/random"]], runs=150)
