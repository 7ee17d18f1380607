"""Verdicts of critics and of people, and lessons of players, read from a run file."""

from __future__ import annotations

from dataclasses import dataclass, field

from parley.memory.feedback import PEOPLE, CriticVerdict, Lesson
from parley.rules.pool import Seat
from parley.store.reader import RunReader


@dataclass
class FeedbackOnRecord:
    """Verdicts and lessons, by match and seat."""

    verdicts: dict[tuple[int, Seat, str], bool | None] = field(default_factory=dict)
    lessons: dict[tuple[int, Seat], Lesson] = field(default_factory=dict)

    def verdict(self, match: int, seat: Seat, feedback: str, right: bool) -> bool | None:
        """Whether a match is a success by this feedback; None if there is no verdict: a critic's
        reply could not be read, people disagree, or they have not voted."""
        if feedback == "truth":
            return right
        return self.verdicts.get((match, seat, feedback))

    def lesson(self, match: int, seat: Seat) -> str:
        """The lesson that the player wrote after a match; empty if there is none."""
        found = self.lessons.get((match, seat))
        return found.text if found is not None else ""


def read_feedback(reader: RunReader) -> FeedbackOnRecord:
    """Read all verdicts and lessons of a run."""
    found = FeedbackOnRecord()
    for row in reader.notes.read(CriticVerdict.kind):
        verdict = CriticVerdict.from_facts(row.facts)
        found.verdicts[row.match, verdict.seat, verdict.by] = verdict.success
    for said in reader.people.verdicts():
        if not said.is_open:
            found.verdicts[said.match, said.seat, PEOPLE] = said.success
    for row in reader.notes.read(Lesson.kind):
        lesson = Lesson.from_facts(row.facts)
        found.lessons[row.match, lesson.seat] = lesson
    return found
