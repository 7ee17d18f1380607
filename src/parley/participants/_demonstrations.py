"""Demonstrations in a view, as turns of the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from parley.rules.pool import Example, Turn, View


def insert_examples(view: View) -> tuple[list[Turn], str | None]:
    """The conversation with its demonstrations before the question they belong to, and a digest of
    these."""
    turns = view.turns
    if view.examples is None:
        return turns, None
    at, examples = view.examples
    shown = demonstration_turns(examples)
    turns[at:at] = shown
    return turns, digest_turns(shown)


def demonstration_turns(examples: Sequence[Example]) -> list[Turn]:
    """Demonstrations as turns: what was asked, and what was answered."""
    return [
        turn
        for example in examples
        for turn in (Turn("user", example.question), Turn("assistant", example.answer))
    ]


def digest_turns(turns: Sequence[Turn]) -> str:
    """What a record keeps of the demonstrations that were sent."""
    return blake2b(b"".join(turn.encoded for turn in turns), digest_size=16).hexdigest()


def digest_shown(examples: Sequence[Example], lessons: str = "") -> str | None:
    """The same digest, of demonstrations and of lessons; None where nothing is shown."""
    turns = demonstration_turns(examples)
    if lessons:
        turns.append(Turn("user", lessons))
    return digest_turns(turns) if turns else None
