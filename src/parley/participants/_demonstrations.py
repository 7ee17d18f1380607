"""Demonstrations in a view, as turns of the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from parley.rules.pool import Example, Turn, View


def insert_examples(view: View) -> tuple[list[Turn], str | None]:
    """The conversation with its demonstrations before their question, and a digest of them."""
    turns = view.turns
    if view.examples is None:
        return turns, None
    at, examples = view.examples
    shown = demonstration_turns(examples)
    turns[at:at] = shown
    return turns, digest_turns(shown)


def demonstration_turns(examples: Sequence[Example]) -> list[Turn]:
    """Demonstrations as turns: a question and an answer each."""
    return [
        turn
        for example in examples
        for turn in (Turn("user", example.question), Turn("assistant", example.answer))
    ]


def digest_turns(turns: Sequence[Turn]) -> str:
    """A digest of the demonstrations that were sent, for the record."""
    return blake2b(b"".join(turn.canonical() for turn in turns), digest_size=16).hexdigest()


def digest_shown(examples: Sequence[Example], lessons: str = "") -> str | None:
    """The digest of demonstrations and lessons; None if nothing is shown."""
    turns = demonstration_turns(examples)
    if lessons:
        turns.append(Turn("user", lessons))
    return digest_turns(turns) if turns else None
