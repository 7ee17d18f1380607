"""Recorded matches as demonstrations: what a seat was asked and what it answered, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from parley.rules.pool import Example

# outcomes of violations after which a reply was not accepted
NOT_TAKEN = ("asked again", "default", "forfeit")


class RecordedReply(NamedTuple):
    """A reply as a record has it."""

    text: str
    finish: str


class RecordedMatch(NamedTuple):
    """The messages of a match that has ended. Places are (round, seat, attempt)."""

    number: int
    # round, kind, sender, audience, content, attempt; the texts of replies are in `replies`
    messages: Sequence[Sequence[Any]]
    replies: Mapping[tuple[int, str, int], RecordedReply]
    not_taken: frozenset[tuple[int, str, int]]  # places of replies that could not be read


class Interaction(NamedTuple):
    """One seat's whole conversation, without repeated questions."""

    opening: str  # what the seat was told before the first question
    turns: tuple[Example, ...]

    @property
    def question(self) -> str:
        """The first thing that the seat was asked."""
        return self.turns[0].question if self.turns else ""


def collect_interactions(match: RecordedMatch) -> dict[str, Interaction | None]:
    """The conversation of every seat that was asked something. None if a reply was cut or never
    readable: such a conversation is not a good example."""
    openings: dict[str, str] = {}
    waiting: dict[str, list[str]] = {}
    asked: dict[str, str] = {}
    turns: dict[str, list[Example]] = {}
    spoilt: set[str] = set()
    for round, kind, sender, audience, content, attempt in match.messages:
        if kind == "tell":
            for seat in audience:
                waiting.setdefault(seat, []).append(content)
        elif kind == "ask":
            for seat in audience:
                before = "\n\n".join(filter(None, waiting.pop(seat, ())))
                if seat in openings:
                    asked[seat] = f"{before}\n\n{content}" if before else content
                else:
                    openings[seat], asked[seat] = before, content
                turns.setdefault(seat, [])
        elif kind == "reply" and sender in asked:
            reply = match.replies.get((round, sender, attempt))
            if reply is None or (round, sender, attempt) in match.not_taken:
                continue
            if reply.finish == "length":
                spoilt.add(sender)
            turns[sender].append(Example(asked.pop(sender), reply.text))
    return {
        seat: None
        if seat in spoilt or seat in asked or not found
        else Interaction(openings[seat], tuple(found))
        for seat, found in turns.items()
    }
