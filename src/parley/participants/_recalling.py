"""A participant that is shown its own experience: demonstrations from earlier matches stand where
the task's examples stood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from parley.errors import ReplayError
from parley.match.protocol import Call, Participant, Reply
from parley.memory.experiences import Experience, Recalled
from parley.memory.wording import FAILED, SUCCEEDED
from parley.participants._demonstrations import digest_examples
from parley.rules.pool import Example, View


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a seat is shown in every call of a match."""

    experiences: tuple[tuple[Example, ...], ...] = ()  # each one turn by turn, in order
    k: int = 0  # the task's own examples fill up to so many, before the others
    lessons: str = ""  # stand before the question
    shuffle: str = ""  # shows the task's own examples, in the order of this seed

    def examples_for(self, own: tuple[Example, ...]) -> tuple[Example, ...]:
        """The demonstrations to show, given those of the task."""
        if self.shuffle:
            return tuple(Random(self.shuffle).sample(own, len(own)))
        missing = max(0, self.k - len(self.experiences))
        return (*own[:missing], *(turn for each in self.experiences for turn in each))


class Recalling:
    """Sits in one seat for one match."""

    def __init__(self, participant: Participant, recollection: Recollection) -> None:
        self._participant, self._recollection = participant, recollection
        self.sees_item = participant.sees_item

    async def reply(self, view: View, call: Call) -> Reply | str:
        own = () if view.examples is None else view.examples[1]
        shown = view.with_examples(self._recollection.examples_for(own), self._recollection.lessons)
        given = await self._participant.reply(shown, call)
        reply = Reply(given) if isinstance(given, str) else given
        if shown.examples is not None and reply.sent is None:
            reply.sent = digest_examples(shown.examples[1])
        return reply

    async def close(self) -> None:
        """Nothing: the participant belongs to the run."""


def make_recollection(
    recalled: Recalled, experiences: Mapping[tuple[int, str], Experience], keep: str
) -> Recollection:
    """What a seat is shown, from the record of it. Where failures are remembered, too, each
    experience says what became of it."""
    try:
        found = [experiences[each.match, each.seat] for each in recalled.shown]
    except KeyError as missing:
        raise ReplayError(
            f"match {recalled.match} recalls what {missing} said, which is no experience on record"
        ) from None
    shown = tuple(
        with_outcome(each.turns, each.success) if keep == "all" else each.turns for each in found
    )
    return Recollection(shown, recalled.k, shuffle=recalled.shuffle)


def with_outcome(turns: tuple[Example, ...], success: bool) -> tuple[Example, ...]:
    """Demonstrations that say before their first question what became of them."""
    said = (SUCCEEDED if success else FAILED).text
    first = turns[0]._replace(question=f"{said}\n\n{turns[0].question}")
    return first, *turns[1:]
