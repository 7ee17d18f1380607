"""My game: players guess two thirds of the average. Replace it by a game of your own.

parley check my_game.py
parley run my_game.py -m bot/thinker -m deep=bot/thinker -M deep.steps=3 -m bot/random
parley run my_game.py -m openai/gpt-4.1-mini -m anthropic/claude-sonnet-4-5 --dry-run
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from parley import Amount, BotView, Metric, Prompt, Referee, Role, Scores, Seat, Task


@dataclass(frozen=True)
class MyGame(Task):
    """Players name a number at the same time; the nearest to two thirds of the average wins."""

    # Fields are parameters of the task. Users change them with `--set rounds=5`. The type and the
    # limits are checked before anything is played.
    rounds: Annotated[int, (1, 20)] = 3

    # Who takes part: two to six players. Models of `-m` take these seats and are ranked. A judge
    # would be another role: "judge": Role(1, instrument=True).
    roles = {"players": Role(2, 6)}
    # How many matches are played, unless the user sets `--repeats`.
    repeats = 10

    # The rule. After `referee` it has one argument for each role: the seats of this role.
    async def play(self, referee: Referee, players: list[Seat]) -> Scores:
        points = dict.fromkeys(players, 0.0)
        # `tell` sends a text to seats. Nobody else sees it.
        referee.tell(players, referee.render(RULES))
        for number in range(1, self.rounds + 1):
            # `ask` waits for all replies, so nobody sees a reply of the same round. `expect` says
            # what a reply must contain. A seat whose replies cannot be read gets the default.
            turn = referee.render(TURN, number=number)
            guesses = await referee.ask(players, turn, expect=Amount("number", 0, 100), default=100)
            target = 2 / 3 * sum(guesses.values()) / len(guesses)
            nearest = min(abs(guess - target) for guess in guesses.values())
            winners = [seat for seat in players if abs(guesses[seat] - target) == nearest]
            for seat in winners:
                points[seat] += 1 / len(winners)
            referee.tell(players, referee.render(NEWS, number=number, target=f"{target:.1f}"))
        # The scores. For several metrics, return a dict for each seat: {"points": …, "other": …}.
        # For anything random, use `referee.rng`, so that the match can be replayed.
        return points

    # The metrics: their range, and how narrow (`epsilon`) a confidence interval should become.
    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        return [Metric("points", 0, self.rounds, epsilon=0.1 * self.rounds)]


# Prompts are constants. {rounds} is a parameter; `referee.render` gets all other variables.
RULES = Prompt(
    "rules",
    "You and other players each name a number from 0 to 100, at the same time, in {rounds} rounds. "
    "Whoever is nearest to two thirds of the average of all numbers wins a point. Several players "
    "who are equally near share it. Collect many points.",
)
TURN = Prompt("turn", "Round {number} of {rounds}: what is your number?")
NEWS = Prompt("news", "Round {number}: two thirds of the average was {target}.")


# A bot plays by a fixed strategy, so that you can test the game without a model. It returns what
# `expect` reads. Further arguments are its options: `-M ALIAS.steps=3`.
def thinker(bot: BotView, steps: Annotated[int, (0, 10)] = 1) -> float:
    """Thinks this many steps ahead of players who guess at random."""
    return 50 * (2 / 3) ** steps


MyGame.bots = {"thinker": thinker}
