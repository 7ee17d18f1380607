"""A participant that is shown its own experiences: demonstrations from earlier matches replace the
task's examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from parley.errors import ReplayError
from parley.match.protocol import Call, Participant, Reply
from parley.memory.experiences import Experience, Recalled
from parley.memory.wording import FAILED, LESSONS, SUCCEEDED
from parley.participants._demonstrations import digest_shown
from parley.rules.pool import Example, View, split_demonstrations
from parley.rules.prompts import Prompt


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a seat is shown in every call of a match."""

    experiences: tuple[tuple[Example, ...], ...] = ()  # each one turn by turn, in order
    # the task's own examples fill up to k and come first; None: all of them are shown
    k: int | None = 0
    lessons: str = ""  # come before the question
    shuffle: str = ""  # show only the task's own examples, shuffled with this seed

    def examples_for(self, own: tuple[Example, ...]) -> tuple[Example, ...]:
        """The demonstrations to show, given those of the task."""
        groups = split_demonstrations(own)
        if self.shuffle:
            shuffled = Random(self.shuffle).sample(groups, len(groups))
            return tuple(turn for each in shuffled for turn in each)
        missing = None if self.k is None else max(0, self.k - len(self.experiences))
        return tuple(turn for each in (*groups[:missing], *self.experiences) for turn in each)


class Recalling:
    """A participant in one seat of one match, with its experiences."""

    def __init__(self, participant: Participant, recollection: Recollection) -> None:
        self._participant, self._recollection = participant, recollection
        self.sees_item = participant.sees_item

    async def reply(self, view: View, call: Call) -> Reply | str:
        own = () if view.examples is None else view.examples[1]
        shown = view.with_examples(self._recollection.examples_for(own), self._recollection.lessons)
        given = await self._participant.reply(shown, call)
        reply = Reply(given) if isinstance(given, str) else given
        lessons = self._recollection.lessons
        if reply.sent is None or lessons:
            reply.sent = digest_shown(() if shown.examples is None else shown.examples[1], lessons)
        return reply

    async def close(self) -> None:
        """Do nothing: the participant belongs to the run."""


def make_recollection(
    recalled: Recalled,
    experiences: Mapping[tuple[int, str], Experience],
    keep: str,
    insights: bool,
    prompts: Mapping[str, Prompt],
) -> Recollection:
    """What a seat is shown, from its record. If failures are remembered too, each experience says
    its outcome. With `insights`, lessons are shown and the task's own examples stay."""
    try:
        found = [experiences[each.match, each.seat] for each in recalled.shown]
    except KeyError as missing:
        raise ReplayError(
            f"match {recalled.match} was shown experience {missing}, which is not on "
            "record: the record is damaged"
        ) from None
    if insights and not recalled.shuffle:
        lines = "\n".join(f"- {' '.join(each.lesson.split())}" for each in found)
        words = prompts.get(LESSONS.name, LESSONS).render({"lessons": lines}) if found else ""
        return Recollection(k=None, lessons=words)
    words_of = {
        success: prompts.get(words.name, words).text
        for success, words in ((True, SUCCEEDED), (False, FAILED))
    }
    shown = tuple(
        with_outcome(each.turns, words_of[each.success]) if keep == "all" else each.turns
        for each in found
    )
    return Recollection(shown, recalled.k, shuffle=recalled.shuffle)


def with_outcome(turns: tuple[Example, ...], said: str) -> tuple[Example, ...]:
    """A demonstration that says its outcome before its first question."""
    first = turns[0]._replace(question=f"{said}\n\n{turns[0].question}")
    return first, *turns[1:]
