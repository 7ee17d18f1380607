"""Forecasts of runs that evolve: in later stages, stand-ins are shown demonstrations as long as
their conversations in the standard stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from parley.match.protocol import Call, Participant, Reply
from parley.participants._recalling import Recalling, Recollection
from parley.plans import MatchSpec
from parley.plans.evolve_settings import EvolveSettings
from parley.rules.pool import Example, Seat, View, split_demonstrations, text_of
from parley.runs.stand_ins import write_filler

USUAL_K = 3  # experiences, if the task has no examples
LESSON_TOKENS = 80  # of a lesson of 60 words


@dataclass
class Rehearsal:
    """Records what stand-ins say in the standard stage, and shows it to them in later stages."""

    settings: EvolveSettings
    turns: dict[str, tuple[Example, ...]] = field(default_factory=dict)  # by role
    own: dict[str, int] = field(default_factory=dict)  # the task's own examples, by role

    def wrap(self, spec: MatchSpec, seat: Seat, participant: Participant) -> Participant:
        """A participant for one match."""
        if spec.stage == 0:
            return Rehearsing(self, participant)
        arm = self.settings.arm(spec.arm)
        if not arm.searches or seat.role not in self.turns:
            return participant
        k = self.choose_k(seat.role, arm.k)
        if arm.memory == "insights":
            lesson = write_filler(LESSON_TOKENS)
            return Recalling(participant, Recollection(k=None, lessons="\n".join([lesson] * k)))
        return Recalling(participant, Recollection((self.turns[seat.role],) * k, k))

    def choose_k(self, role: str, k: int | None) -> int:
        """How many experiences a role is shown."""
        return k or self.own.get(role) or USUAL_K


class Rehearsing:
    """A stand-in in one seat of the standard stage, whose replies are recorded."""

    def __init__(self, rehearsal: Rehearsal, participant: Participant) -> None:
        self._rehearsal, self._participant = rehearsal, participant
        self.sees_item = participant.sees_item
        self._turns: list[Example] = []

    async def reply(self, view: View, call: Call) -> Reply | str:
        given = await self._participant.reply(view, call)
        said = given if isinstance(given, str) else text_of(given.content)
        asked = view.text if self._turns else view.text.removeprefix(view.told).lstrip("\n")
        self._turns.append(Example(asked, said))
        own = () if view.examples is None else view.examples[1]
        role, shown = view.seat.role, len(split_demonstrations(own))
        self._rehearsal.own[role] = max(shown, self._rehearsal.own.get(role, 0))
        self._rehearsal.turns[role] = tuple(self._turns)
        return given

    async def close(self) -> None:
        """Does nothing: the stand-in is used again."""
