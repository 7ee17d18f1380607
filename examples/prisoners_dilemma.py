"""Prisoner's dilemma: your own task in one file.

parley run examples/prisoners_dilemma.py -m bot/tit-for-tat -m bot/defector -m bot/random
"""

from collections.abc import Mapping
from dataclasses import dataclass

from parley import BotView, Choice, Metric, Prompt, Referee, Role, Scores, Seat, Task

PAYS = {
    "cooperate": {"cooperate": 3, "defect": 0},
    "defect": {"cooperate": 5, "defect": 1},
}


@dataclass(frozen=True)
class PrisonersDilemma(Task):
    """Two players choose at the same time, again and again: cooperate or defect."""

    rounds: int = 5

    roles = {"players": Role(2)}
    repeats = 10

    async def play(self, referee: Referee, players: list[Seat]) -> Scores:
        points = dict.fromkeys(players, 0)
        referee.tell(players, referee.render(RULES))
        for number in range(1, self.rounds + 1):
            turn = referee.render(TURN, number=number)
            move = await referee.ask(
                players, turn, expect=Choice("move", ("cooperate", "defect")), default="defect"
            )
            one, two = players
            for me, other in ((one, two), (two, one)):
                points[me] += PAYS[move[me]][move[other]]
                referee.tell(me, referee.render(NEWS, move=move[other]))
        return points

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        return [Metric("points", 0, 5 * self.rounds, epsilon=0.25 * self.rounds)]


RULES = Prompt(
    "rules",
    "You and one other player choose at the same time, {rounds} times, to cooperate or to defect. "
    "Both cooperate: 3 points each. Both defect: 1 each. One defects alone: 5 for the defector, "
    "0 for the other. Collect many points.",
)
TURN = Prompt("turn", "Round {number} of {rounds}: what is your move?")
NEWS = Prompt("news", "The other player's move was: {move}.")


def tit_for_tat(bot: BotView) -> str:
    """Cooperates in the first round, then copies the other player's last move."""
    return "defect" if "move was: defect" in bot.view.text else "cooperate"


PrisonersDilemma.bots = {"tit-for-tat": tit_for_tat, "defector": lambda bot: "defect"}
