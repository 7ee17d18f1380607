"""Public goods game: pay into the common pool, or keep your coins and share what others paid."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from parley import Amount, BotView, Metric, Prompt, Referee, ReplyText, Role, Scores, Seat, Task


@dataclass(frozen=True)
class PublicGoods(Task):
    """Pay into a common pool that grows, or keep your coins and share what others paid (DynaEval §2.4).

    rounds      number of rounds in a match
    endowment   coins that every player gets in each round
    multiplier  factor by which the common pool is multiplied before it is shared
    feedback    what players see after a round: their own income (the paper's mode 1) or all investments without names (mode 2)
    n           number of players
    number      number of the current round
    news        the player's income in the last round, or all investments in it
    """  # noqa: E501

    rounds: int = 5
    endowment: int = 10
    multiplier: float = 1.2
    feedback: Literal["income", "investments"] = "income"

    roles = {"players": Role(2, 10)}
    repeats = 10

    async def play(self, referee: Referee, players: list[Seat]) -> Scores:
        coins = dict.fromkeys(players, 0.0)
        referee.tell(players, referee.render(RULES[self.feedback], n=len(players)))

        for number in range(1, self.rounds + 1):
            said = await referee.ask(
                players,
                referee.render(TURN, number=number),
                expect=Amount("coins", 0, self.endowment),
                default=None,
            )
            invested = {player: said[player] or 0 for player in players}
            income = pool_share(invested.values(), self.multiplier)
            for player in players:
                # A player without a readable amount loses the coins of the round: otherwise
                # nonsense would be a free ride.
                kept = 0 if said[player] is None else self.endowment - invested[player]
                coins[player] += kept + income

            referee.note(invested=invested, income=income)
            ranked = sorted(invested.values(), reverse=True)
            referee.tell(
                players,
                referee.render(
                    NEWS[self.feedback], news=ranked if self.feedback == "investments" else income
                ),
            )

        return coins

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        n, alpha, most = seats["players"], self.multiplier, self.rounds * self.endowment
        # the best outcomes: keep everything while the others pay, or everybody pays everything
        high = most * max(1 + alpha * (n - 1) / n, alpha)
        return [Metric("payoff", 0, high, epsilon=0.05 * high, unit="coins")]

    def cautions(self, seats: Mapping[str, int]) -> Iterator[str]:
        if not 1 < self.multiplier < seats["players"]:
            yield (
                f"with `multiplier={self.multiplier:g}` the game is not a dilemma, because the "
                "best choice for one player is also the best for all: choose a multiplier "
                f"between 1 and {seats['players']} (the number of players)"
            )

    def __post_init__(self) -> None:
        for name, least in {"rounds": 1, "endowment": 1, "multiplier": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"`{name}` must be at least {least}, not {getattr(self, name)}")


def pool_share(invested: Collection[float], multiplier: float) -> float:
    """What each player receives from the pool, whether it paid or not (§2.4, but divided by n
    instead of 4)."""
    return sum(invested) * multiplier / len(invested)


RULES = {
    "income": Prompt(
        "rules",
        """\
You play a game with {n} players that lasts {rounds} rounds. Every player gets {endowment} coins at the start of each \
round and decides, at the same time as all others, how many of them to put into a common pool. When the round ends, the \
coins in the pool are multiplied by {multiplier} and divided evenly among all {n} players, whether they paid in or not. \
Coins that you do not invest are yours to keep. After each round you learn what you received from the pool. \
Your goal is to own the most coins at the end.""",  # noqa: E501
    ),
    "investments": Prompt(
        "rules_open",
        """\
You play a game with {n} players that lasts {rounds} rounds. Every player gets {endowment} coins at the start of each \
round and decides, at the same time as all others, how many of them to put into a common pool. When the round ends, the \
coins in the pool are multiplied by {multiplier} and divided evenly among all {n} players, whether they paid in or not. \
Coins that you do not invest are yours to keep. After each round you are shown what the players invested, as a list from \
the largest to the smallest amount, without names. Your goal is to own the most coins at the end.""",  # noqa: E501
    ),
}

TURN = Prompt(
    "turn",
    "Round {number} of {rounds} begins and you get {endowment} coins. How many do you invest, "
    "from 0 to {endowment}, and why?",
)

NEWS = {
    "income": Prompt("news", "In the last round the pool paid you {news} coins."),
    "investments": Prompt("news_open", "In the last round the players invested {news} coins."),
}


def free_rider(bot: BotView) -> ReplyText:
    """Pays nothing."""
    return bot.explain(0, "I get my share of the pool whether I pay or not, so I keep my coins.")


def altruist(bot: BotView) -> ReplyText:
    """Pays everything."""
    coins = float(bot.task.endowment)
    return bot.explain(coins, "The pool grows for all of us, so I give it everything I have.")


def gradual(bot: BotView) -> ReplyText:
    """Pays half of its coins in the first round and one coin more in each later round."""
    coins = float(min(bot.task.endowment, bot.task.endowment // 2 + bot.view.round - 1))
    first = "I begin with half and watch." if bot.view.round == 1 else "One coin more each round."
    return bot.explain(coins, first)


def reciprocator(bot: BotView) -> ReplyText:
    """Pays half of its coins in the first round, then the average payment of the previous round."""
    task, told = bot.task, bot.view.text
    if paid := re.search(r"invested \[([^]]+)\]", told):
        average = mean(float(amount) for amount in paid[1].split(","))
    elif earned := re.search(r"pool paid you ([\d.]+)", told):
        average = float(earned[1]) / task.multiplier if task.multiplier else 0
    else:
        half = float(task.endowment / 2)
        return bot.explain(half, "I begin with half, and then do as the others do.")
    coins = min(float(task.endowment), round(average, 2))
    return bot.explain(coins, f"The players paid {coins:g} on average, so I pay that, too.")


PublicGoods.bots = {
    "free-rider": free_rider,
    "altruist": altruist,
    "gradual": gradual,
    "reciprocator": reciprocator,
}
