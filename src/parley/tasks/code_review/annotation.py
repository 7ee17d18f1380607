"""The annotation sheet for comparing two programs for a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parley.annotation.sheets import Exchange, ItemText, SheetFormat, last_reply
from parley.match.record import RecordedCall

CRITERIA = {
    "correctness": "does the program do what the problem asks, for unusual input too?",
    "clarity": "is it easy to read and to change?",
    "efficiency": "is it free of needless work?",
}


def write_problem(item: Mapping[str, Any]) -> ItemText:
    """A problem with the signature that its tests call."""
    return ItemText(item["text"], item.get("signature") or "")


def write_program(calls: Sequence[RecordedCall]) -> tuple[Exchange, ...]:
    """The last version of the programmer, which the tests decide about."""
    return last_reply(calls, "programmer")


SHEET = SheetFormat(
    "pass", CRITERIA, write_problem, write_program, "programmer", "program", is_code=True
)
