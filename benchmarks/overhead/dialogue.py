"""The dialogue as a task of Parley."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import workload

from parley import Metric, Prompt, Referee, Role, Scores, Seat, Task


@dataclass(frozen=True)
class Haggling(Task):
    """Two seats, asked in turn; each is told what the other said."""

    calls: int = 6

    roles = {"opener": Role(), "responder": Role()}

    async def play(self, referee: Referee, opener: Seat, responder: Seat) -> Scores:
        referee.tell([opener, responder], referee.render(RULES))
        speaker, listener = opener, responder
        said = await referee.ask(speaker, referee.render(OPENING))
        for _ in range(1, self.calls):
            speaker, listener = listener, speaker
            referee.tell(speaker, referee.quote(said))
            said = await referee.ask(speaker, referee.render(TURN))
        return {opener: (self.calls + 1) // 2, responder: self.calls // 2}

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        return [Metric("spoken", 0, self.calls, epsilon=1, unit="turns")]


RULES = Prompt("rules", workload.RULES)
OPENING = Prompt("opening", workload.OPENING)
TURN = Prompt("turn", workload.TURN)
