"""Feedback after a match, besides its score: who judges whether it was a success, the verdict, and
the lesson that the player writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from parley.rules.notes import Note
from parley.rules.pool import Seat

Critic = Literal["critic", "self"]
CRITIC = "critic"  # another model judges
SELF_CRITIC = "self_critic"  # the model that played judges itself
LESSON_WRITER = "lesson_writer"  # the model that played writes down what it has learned
FEEDBACK_ROLES = (CRITIC, SELF_CRITIC, LESSON_WRITER)
# the role of the model that gives the feedback, where a model gives it
CRITICS: dict[Critic, str] = {"critic": CRITIC, "self": SELF_CRITIC}
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
