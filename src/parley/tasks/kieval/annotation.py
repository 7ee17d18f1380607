"""The annotation sheet for comparing two interviews (Yu et al. 2024, §4.3, appendix C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parley.annotation.sheets import Exchange, ItemText, SheetFormat
from parley.match.record import RecordedCall
from parley.rules.items.question import Question
from parley.rules.pool import text_of

CRITERIA = {
    "factual accuracy": "are the candidate's statements true?",
    "logical structure": "do its arguments follow from each other?",
    "conciseness": "is it free of unnecessary content?",
    "coherence": "are its replies consistent with each other?",
}


def write_question(item: Mapping[str, Any]) -> ItemText:
    """A question with its choices and its right answer."""
    question = Question(**{**item, "choices": tuple(item["choices"])})
    right = f"{question.answer}. {question.right}" if question.choices else question.answer
    return ItemText(question.question, question.lettered, right)


def write_interview(calls: Sequence[RecordedCall]) -> tuple[Exchange, ...]:
    """The first answer, then each question of the interactor with the reply to it. Of several
    attempts the last one counts."""
    last = {
        (call.round, call.seat.role): call.reply
        for call in calls
        if call.seat.role in ("candidate", "interactor")
    }
    found, asked = [], ""
    for (_, role), reply in sorted(last.items(), key=lambda each: each[0]):
        if role == "interactor":
            asked = text_of(reply.content)
        else:
            found.append(Exchange(asked, text_of(reply.content).strip(), reply.finish == "length"))
    return tuple(found)


SHEET = SheetFormat("kieval", CRITERIA, write_question, write_interview)
