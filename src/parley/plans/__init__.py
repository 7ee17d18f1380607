"""Plans: pure functions from what has been played to what is played next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from parley.rules.pool import Seat

Marks = Mapping[Seat, Mapping[str, float | None]]  # a match's scores by seat and metric


@dataclass(frozen=True, slots=True)
class MatchSpec:
    """One match to play: who sits where, on which item, in which block, with which seed."""

    number: int
    block: str
    item: str | None
    repeat: int
    seed: int
    seats: Mapping[Seat, str]
    # seats whose results are decided: they only fill the table, and do not count
    idle: frozenset[Seat] = frozenset()


@dataclass(frozen=True, slots=True)
class Block:
    """A finished unit of independence: all that was played on one item, or in one repeat."""

    name: str
    scores: Mapping[int, Marks]  # by match number


@dataclass(frozen=True, slots=True)
class Done:
    """The plan wants nothing more."""

    status: str
    reason: str = ""


class Plan(Protocol):
    """Asked again and again, always with the finished blocks in the plan's own order."""

    @property
    def opening(self) -> MatchSpec:
        """The first match, by which the size of the table is known."""
        ...

    @property
    def outlook(self) -> str:
        """How far the plan has come, in a few words; empty where nothing but counting matches is to
        be said."""
        ...

    def cautions(self) -> Sequence[str]:
        """What the user should know before anything is played: what to expect, and whether it can
        be had."""
        ...

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done: ...


def gathered(specs: Mapping[int, MatchSpec], scores: Mapping[int, Marks]) -> list[Block]:
    """The finished blocks, in the order in which the plan first named them."""
    members: dict[str, list[int]] = {}
    for number in sorted(specs):
        members.setdefault(specs[number].block, []).append(number)
    return [
        Block(name, {number: scores[number] for number in numbers})
        for name, numbers in members.items()
        if all(number in scores for number in numbers)
    ]


def unfolded(plan: Plan, scores: Mapping[int, Marks]) -> tuple[dict[int, MatchSpec], Done | None]:
    """All that a plan asks for, given what is known of its matches, and how it ends, if it does."""
    specs: dict[int, MatchSpec] = {}
    while True:
        batch = plan.next(gathered(specs, scores))
        if isinstance(batch, Done):
            return specs, batch
        specs |= {spec.number: spec for spec in batch}
        if not specs.keys() <= scores.keys():
            return specs, None


def seed_for(run: int, block: str, repeat: int) -> int:
    """A match's seed: from the block and the repeat, not the cast, so all models meet the same
    draws."""
    return int.from_bytes(blake2b(f"{run}|{block}|{repeat}".encode(), digest_size=6).digest())
