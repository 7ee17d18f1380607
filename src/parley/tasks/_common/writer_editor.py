"""The writer-editor paradigm (DynaEval §A.4): a writer writes, an editor comments or polishes,
until they agree or the rounds are over."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from parley import Fields, Metric, Note, Prompt, Reader, Referee, Seat, Text, Votes
from parley.tasks._common.judge_votes import VoteRule, combine_votes
from parley.tasks._common.overlap import Overlap, compute_overlap

OVER = "over"


class WriterEditorPrompts(NamedTuple):
    """The prompts of the paradigm; `{said}` is the other role's last reply."""

    write: Prompt
    revise: Prompt
    review: Prompt
    review_again: Prompt
    over: str = OVER  # the word with which an editor ends the work


@dataclass(frozen=True)
class Version:
    """The writer's text in one round and the editor's reply to it; None if unreadable."""

    text: str | None
    review: str | None


async def play_writer_and_editor(
    referee: Referee,
    writer: Seat,
    editor: Seat,
    rounds: int,
    words: WriterEditorPrompts,
    reader: Reader[str],
    /,
    **values: Any,
) -> list[Version]:
    """Play the rounds: each is one version with its review. From the second review on, the editor
    can end the work with one word."""
    versions: list[Version] = []
    for number in range(1, rounds + 1):
        first, said = (
            number == 1,
            "" if not versions else referee.quote(versions[-1].review, editor),
        )
        task = referee.render(
            words.write if first else words.revise, said=said, number=number, **values
        )
        text = await referee.ask(writer, task, expect=reader, default=None)
        prompt = words.review if first else words.review_again
        review = await referee.ask(
            editor,
            referee.render(prompt, said=referee.quote(text, writer), number=number, **values),
            expect=Text(),
            default=None,
        )
        versions.append(Version(text, review))
        if not first and is_ending(review, words.over):
            break
    return versions


def last_texts(versions: Sequence[Version], over: str = OVER) -> tuple[str | None, str | None]:
    """The last texts of writer and editor, for editors that reply with a text of their own. An
    editor that ends the work adopts the writer's text."""
    text, review = versions[-1].text, versions[-1].review
    return text, text if len(versions) > 1 and is_ending(review, over) else review


def is_ending(review: str | None, over: str = OVER) -> bool:
    """Whether a review is the one word that ends the work."""
    return review is not None and strip_to_letters(review) == strip_to_letters(over) != ""


@dataclass(frozen=True)
class OverlapCounts(Note, kind="overlap"):
    """The counts behind BLEU and chrF, by seat and measure."""

    overlap: Mapping[Seat, Mapping[str, Sequence[int]]]


@dataclass(frozen=True)
class RubricVotes(Votes):
    """Votes, with the order in which the roles were named to the judges."""

    order: Sequence[Seat]


def strip_to_letters(word: str) -> str:
    """Lower-case a word and remove spaces, quotation marks and punctuation of any script."""
    found = unicodedata.normalize("NFKC", word).casefold()
    return "".join(character for character in found if unicodedata.category(character)[0] in "LNM")


def quote_conversation(
    referee: Referee, writer: Seat, editor: Seat, versions: Sequence[Version]
) -> str:
    """Quote the whole exchange for a judge."""
    parts = []
    for number, version in enumerate(versions, 1):
        parts += [
            f"Round {number}:",
            referee.quote(version.text, writer),
            referee.quote(version.review, editor),
        ]
    return "\n".join(parts)


def note_overlap(
    referee: Referee, given: Mapping[Seat, str | None], reference: str, language: str
) -> dict[Seat, Overlap]:
    """Score texts against a reference. The counts are noted, so that an analysis can score all
    texts of a run as one corpus."""
    found = {seat: compute_overlap(text or "", reference, language) for seat, text in given.items()}
    referee.note(OverlapCounts({seat: each.counts for seat, each in found.items()}))
    return found


async def ask_judges(
    referee: Referee,
    judges: Sequence[Seat],
    words: Prompt,
    rubric: Mapping[Seat, Prompt],
    vote: VoteRule = "mean",
    /,
    **values: Any,
) -> dict[Seat, dict[str, float | None]]:
    """Let every judge rate every seat from 1 to 10, with reasons, all at once. A judge whose reply
    is unreadable has no vote.

    The prompt `words` uses {roles} and {rubric}. The random seed of the match decides their order:
    it is the same for all matches on an item, and over all items each role comes first about
    equally often. Without judges there are no scores.
    """
    if not judges:
        return {seat: {} for seat in rubric}
    fields = {seat: seat.key.replace(".", "_") for seat in rubric}
    order = referee.rng.sample(list(rubric), len(rubric))
    lines = "\n".join(f"- {seat}: {referee.render(rubric[seat], **values)}" for seat in order)
    named = " and ".join(f"the {str(seat).lower()}" for seat in order)
    text = referee.render(words, roles=named, rubric=lines, **values)
    found = await referee.ask(
        judges, text, expect=Fields({fields[seat]: RATING for seat in order}), default=None
    )
    votes: dict[Seat, dict[Seat, Any] | None] = {
        judge: None if said is None else {seat: said[field] for seat, field in fields.items()}
        for judge, said in found.items()
    }
    scores: dict[Seat, dict[str, float | None]] = {}
    for seat in rubric:
        given = [float(said[seat]["score"]) for said in votes.values() if said is not None]
        scores[seat] = {"judge": combine_votes(given, vote)}
    referee.note(RubricVotes(votes, order))
    return scores


def judge_metrics(seats: Mapping[str, int]) -> list[Metric]:
    """The metric `judge`, if there are judges."""
    return [Metric("judge", 1, 10, epsilon=0.25, judged=True, spread=1.5)] if seats["judge"] else []


RATING: Mapping[str, Any] = {
    "type": "object",
    "description": '{"basis": <why, in a few sentences>, "score": <a number from 1 to 10>}',
    "properties": {
        "basis": {"type": "string"},
        "score": {"type": "number", "minimum": 1, "maximum": 10},
    },
    "required": ["basis", "score"],
    "additionalProperties": False,
}
