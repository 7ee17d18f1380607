"""The annotation sheet for comparing two translations of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parley.annotation.sheets import Exchange, ItemText, SheetFormat, last_reply
from parley.match.record import RecordedCall

CRITERIA = {
    "accuracy": "does the translation say everything that the text says, and nothing else?",
    "fluency": "does it read like a text that was written in this language?",
    "terms": "are names, numbers and technical terms right?",
}


def write_paragraph(item: Mapping[str, Any]) -> ItemText:
    """A text with its reference translation."""
    return ItemText(item["source"], right=item["reference"], right_name="reference translation")


def write_translation(calls: Sequence[RecordedCall]) -> tuple[Exchange, ...]:
    """The last version of the translator, which is the one that is scored."""
    return last_reply(calls, "translator")


SHEET = SheetFormat(
    "bleu", CRITERIA, write_paragraph, write_translation, "translator", "translation"
)
