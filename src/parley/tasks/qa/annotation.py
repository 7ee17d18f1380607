"""The annotation sheet for comparing two replies to a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parley.annotation.sheets import Exchange, ItemText, SheetFormat, last_reply
from parley.match.record import RecordedCall
from parley.rules.items.question import Question

CRITERIA = {
    "correctness": "is the answer the correct one, however it is written?",
    "reasoning": "if it gives reasons, do they lead to its answer?",
}


def write_asked(item: Mapping[str, Any]) -> ItemText:
    """A question with its choices and its right answer."""
    question = Question(**{**item, "choices": tuple(item["choices"])})
    right = f"{question.answer}. {question.right}" if question.choices else question.answer
    return ItemText(question.question, question.lettered, right)


def write_answer(calls: Sequence[RecordedCall]) -> tuple[Exchange, ...]:
    """The answer; of several attempts the last one counts."""
    return last_reply(calls, "student")


SHEET = SheetFormat("accuracy", CRITERIA, write_asked, write_answer, "student", "reply")
