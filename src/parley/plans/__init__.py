"""Plans: pure functions from the blocks played so far to the matches to play next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from parley.rules.pool import Seat

Marks = Mapping[Seat, Mapping[str, float | None]]  # a match's scores by seat and metric


@dataclass(frozen=True, slots=True)
class MatchSpec:
    """One match to play: its seats, item, block and seed."""

    number: int
    block: str
    item: str | None
    repeat: int
    seed: int
    seats: Mapping[Seat, str]
    # Seats that only complete the match: their results are already decided and do not count.
    # Run files store them under the key `idle`.
    unscored: frozenset[Seat] = frozenset()
    # in the plan `evolve`: the round, 0 for the standard one, and the arm that it belongs to
    stage: int = 0
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A finished unit of independence: all matches on one item, or of one repeat."""

    name: str
    scores: Mapping[int, Marks]  # by match number


@dataclass(frozen=True, slots=True)
class Done:
    """The plan is complete."""

    status: str
    reason: str = ""


class Plan(Protocol):
    """Called repeatedly, always with the finished blocks in the plan's own order."""

    @property
    def first_match(self) -> MatchSpec:
        """The first match; it shows how many seats each role has."""
        ...

    @property
    def status_line(self) -> str:
        """The plan's progress in a few words; empty if the count of matches is enough."""
        ...

    def cautions(self) -> Sequence[str]:
        """Warnings to show before the run: what it will take, and whether its goal can be
        reached."""
        ...

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done: ...


def finished_blocks(specs: Mapping[int, MatchSpec], scores: Mapping[int, Marks]) -> list[Block]:
    """The blocks whose matches all have scores, in the order in which the plan introduced them."""
    members: dict[str, list[int]] = {}
    for number in sorted(specs):
        members.setdefault(specs[number].block, []).append(number)
    return [
        Block(name, {number: scores[number] for number in numbers})
        for name, numbers in members.items()
        if all(number in scores for number in numbers)
    ]


def replay_plan(
    plan: Plan, scores: Mapping[int, Marks]
) -> tuple[dict[int, MatchSpec], Done | None]:
    """All matches that a plan asks for, given the scores so far, and how it ends, if it does."""
    specs: dict[int, MatchSpec] = {}
    while True:
        batch = plan.next(finished_blocks(specs, scores))
        if isinstance(batch, Done):
            return specs, batch
        specs |= {spec.number: spec for spec in batch}
        if not specs.keys() <= scores.keys():
            return specs, None


def seed_for(run: int, block: str, repeat: int) -> int:
    """The seed of a match. It depends on block and repeat, not on the models, so that all models
    meet the same random draws."""
    return int.from_bytes(blake2b(f"{run}|{block}|{repeat}".encode(), digest_size=6).digest())
