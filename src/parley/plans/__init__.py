"""Plans: which matches a run plays. They depend only on the scores of earlier matches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
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
    unscored: frozenset[Seat] = frozenset()
    # in the plan `evolve`: the stage, 0 for the standard one, and the arm that it belongs to
    stage: int = 0
    arm: str = ""

    @property
    def seating(self) -> list[tuple[str, str]]:
        """Which alias sits where, in a fixed order. No two matches of a block are equal in seating,
        stage and arm; a match of another run with the same seed may be, whatever its number."""
        return sorted((seat.key, alias) for seat, alias in self.seats.items())


@dataclass(frozen=True, slots=True)
class Done:
    """The plan is complete."""

    status: str
    reason: str = ""


class FinishedMatches(Protocol):
    """The matches of a run that have ended, for a plan that has to know their scores."""

    def have_ended(self, first: int, last: int) -> bool:
        """Whether all matches numbered `first` to `last` have ended."""
        ...

    def scores_between(self, first: int, last: int) -> Mapping[int, Marks]:
        """The scores of the matches numbered `first` to `last` that have ended."""
        ...


class Plan(Protocol):
    """Hands out the matches of a run in portions: some blocks or, in `evolve`, a stage."""

    @property
    def ahead(self) -> int:
        """How many portions may still be played when the next one is asked for."""
        ...

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

    def matches(self, finished: FinishedMatches) -> Iterator[Sequence[MatchSpec] | Done]:
        """The matches of a run, portion after portion, from the first match on; at the end `Done`.
        Numbers ascend without gaps. The caller asks for a portion once all portions but the last
        `ahead` have ended; a portion may be empty, if there is only something to wait for. A large
        portion makes its matches when they are asked for."""
        ...


class PlanCursor:
    """Asks a plan for its next matches as soon as the plan can make them."""

    def __init__(self, plan: Plan, finished: FinishedMatches) -> None:
        self._ahead, self._finished, self._matches = plan.ahead, finished, plan.matches(finished)
        self._open: deque[tuple[int, int]] = deque()  # first and last numbers

    def next_matches(self) -> Sequence[MatchSpec] | Done | None:
        """The next matches, or how the plan ends; None if earlier matches have to end first."""
        while len(self._open) > self._ahead:
            if not self._finished.have_ended(*self._open[0]):
                return None
            self._open.popleft()
        matches = next(self._matches)
        if not isinstance(matches, Done):
            empty = (1, 0)
            self._open.append((matches[0].number, matches[-1].number) if matches else empty)
        return matches


@dataclass(frozen=True)
class EndedMatches:
    """The matches that have ended, in memory."""

    scores: Mapping[int, Marks]

    def have_ended(self, first: int, last: int) -> bool:
        return all(number in self.scores for number in range(first, last + 1))

    def scores_between(self, first: int, last: int) -> Mapping[int, Marks]:
        known = range(first, last + 1)
        return {number: self.scores[number] for number in known if number in self.scores}


def seed_for(run: int, block: str, repeat: int) -> int:
    """The seed of a match. It depends on block and repeat, not on the models, so that all models
    meet the same random draws."""
    return int.from_bytes(blake2b(f"{run}|{block}|{repeat}".encode(), digest_size=6).digest())
