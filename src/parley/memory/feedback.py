"""Feedback after a match, besides its score: who judges whether it was a success, the verdict, and
the lesson that the player writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from parley.rules.notes import Note
from parley.rules.pool import Seat

Critic = Literal["critic", "self"]
VerdictChoice = Literal["yes", "no", "unsure"]  # whether a person says that a seat succeeded
VERDICT_CHOICES: tuple[VerdictChoice, ...] = ("yes", "no", "unsure")
CRITIC = "critic"  # another model judges
SELF_CRITIC = "self_critic"  # the model that played judges itself
LESSON_WRITER = "lesson_writer"  # the model that played writes down what it has learned
FEEDBACK_ROLES = (CRITIC, SELF_CRITIC, LESSON_WRITER)
# the role of the model that gives the feedback, where a model gives it
CRITICS: dict[Critic, str] = {"critic": CRITIC, "self": SELF_CRITIC}
PEOPLE = "people"  # people vote on the matches of a stage before the next one begins
LESSON_WORDS = 60  # the most words of a lesson
# a character of Chinese, Japanese or Korean stands for a word
WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)


@dataclass(frozen=True)
class CriticVerdict(Note, kind="evolve.verdict"):
    """Whether a critic judges a seat to have succeeded; None if its reply could not be read."""

    seat: Seat
    by: Critic
    success: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class PeopleVerdict:
    """How many people said that a seat succeeded, that it failed, and that they cannot tell. The
    counts are None until the votes are used: people were asked, and the run waits."""

    match: int
    seat: Seat
    yes: int | None = None
    no: int | None = None
    unsure: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the votes have not been used yet."""
        return self.yes is None or self.no is None or self.unsure is None

    @property
    def success(self) -> bool | None:
        """What most people said; None if as many said yes as no, or nobody could tell."""
        if self.yes is None or self.no is None or self.yes == self.no:
            return None
        return self.yes > self.no

    def to_dict(self) -> dict[str, Any]:
        """The form that `Result.matches` and `show --json` have."""
        counts = {"yes": self.yes, "no": self.no, "unsure": self.unsure}
        return {"seat": self.seat.key, "success": self.success, **counts}


@dataclass(frozen=True)
class Lesson(Note, kind="evolve.lesson"):
    """What a player wrote down after a match."""

    seat: Seat
    text: str  # cut to the most words that a lesson may have
    words: int  # before it was cut


class CutText(NamedTuple):
    """The beginning of a text, and how many words the whole text has."""

    text: str
    words: int


def cut_words(text: str, most: int = LESSON_WORDS) -> CutText:
    """Cut a text after `most` words, and keep the white space between them."""
    places = [found.end() for found in WORD.finditer(text)]
    kept = text if len(places) <= most else text[: places[most - 1]]
    return CutText(kept.strip(), len(places))
