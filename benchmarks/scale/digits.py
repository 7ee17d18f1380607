"""A task for workers: two players name digits in turn, so that a match has one call at a time."""

from collections.abc import Mapping
from dataclasses import dataclass

from parley import Metric, Prompt, Referee, Role, Scores, Seat, Task


@dataclass(frozen=True)
class Digits(Task):
    """Two players name digits in turn, and each scores the mean of its own."""

    calls: int = 4

    roles = {"opener": Role(), "responder": Role()}

    async def play(self, referee: Referee, opener: Seat, responder: Seat) -> Scores:
        said: dict[Seat, list[int]] = {opener: [], responder: []}
        for number in range(self.calls):
            seat = (opener, responder)[number % 2]
            text = await referee.ask(seat, referee.render(QUESTION))
            said[seat].append(int(text.split()[-1]))
        return {seat: sum(numbers) / len(numbers) for seat, numbers in said.items()}

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        return [Metric("mean", 0, 9, epsilon=0.01)]


QUESTION = Prompt("question", "Name a digit.")
