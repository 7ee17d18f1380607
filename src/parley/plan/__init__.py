"""Plans: pure functions from what has been played to what is played next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from parley.pool import Seat


@dataclass(frozen=True, slots=True)
class MatchSpec:
    """One match to play: who sits where, on which item, in which block, with which seed."""

    number: int
    block: str
    item: str | None
    repeat: int
    seed: int
    seats: Mapping[Seat, str]


@dataclass(frozen=True, slots=True)
class Block:
    """A finished unit of independence: all that was played on one item, or in one repeat."""

    name: str
    scores: Mapping[int, Mapping[Seat, Mapping[str, float | None]]]  # by match number


@dataclass(frozen=True, slots=True)
class Done:
    """The plan wants nothing more."""

    status: str
    reason: str = ""


class Plan(Protocol):
    """Asked again and again, always with the finished blocks in the plan's own order."""

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done: ...


def seed_for(run: int, block: str, repeat: int) -> int:
    """A match's seed: from the block and the repeat, not the cast, so all models meet the same draws."""
    return int.from_bytes(blake2b(f"{run}|{block}|{repeat}".encode(), digest_size=6).digest())
