"""What writers, editors and judges share: judges of several seats of one role, and of none."""

from dataclasses import dataclass

from parley import Metric, Prompt, Role, Task, Text
from parley.tasks._common.writer_editor import ask_judges, judge_metrics
from parley.testing.by_hand import ByHand


@dataclass(frozen=True)
class Contest(Task):
    """Two players write a line each, judges rate them."""

    roles = {"players": Role(2), "judge": Role(0, 3, instrument=True)}

    async def play(self, referee, players, judge):
        await referee.ask(players, "A line, please.", expect=Text())
        return await ask_judges(referee, judge, JUDGE, dict.fromkeys(players, LINE))

    def metrics(self, seats):
        return judge_metrics(seats) or [Metric("lines", 0, 1, epsilon=1)]


JUDGE, LINE = Prompt("judge", "Rate {roles}:\n{rubric}"), Prompt("line", "is it a good line?")


def test_seats_of_one_role_are_rated_apart():
    table = ByHand(Contest(), judge=2)
    table.answer("A line.")
    assert "Player 1: is it a good line?" in table.asked.text
    assert "the player 1" in table.asked.text
    good, bad = {"basis": "b", "score": 8}, {"basis": "b", "score": 2}
    table.answer({key: {"players_1": good, "players_2": bad} for key in table.asked.seats})
    assert {seat.number: by["judge"] for seat, by in table.scores.items()} == {1: 8, 2: 2}


def test_where_nobody_judges_there_is_no_score_of_judges():
    table = ByHand(Contest())
    table.answer("A line.")
    assert all(by == {"lines": None} for by in table.scores.values())
    assert judge_metrics({"judge": 0}) == []
