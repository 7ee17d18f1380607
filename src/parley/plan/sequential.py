"""Plans that look at what has been played, block after block, until a rule is satisfied."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Protocol

from parley.plan import Block, Done, MatchSpec
from parley.plan.series import Series

BUSY = 64  # matches that keep the endpoints busy, so that a batch has no fewer if it can
GROWTH = 20  # a batch is at least one block for so many that were played: waiting for its last match then hardly matters
MOST_BLOCKS = 1000  # unless more are asked for

Values = Mapping[tuple[str, str], Sequence[float]]  # by role and alias, the score of every match of a block


class Rule(Protocol):
    """What decides when enough has been played, and whose results are still wanted."""

    @property
    def metrics(self) -> Mapping[str, str]:
        """By role, the metric that it goes by."""
        ...

    @property
    def outlook(self) -> str: ...

    def cautions(self, most: int, matches: int) -> Sequence[str]: ...

    def active(self, role: str, alias: str) -> bool: ...

    def take(self, block: Values) -> None: ...

    def verdict(self) -> Done | None: ...


class Sequential:
    """Plays block after block, in batches, until its rule, the items or a bound end it.

    Items come in an order drawn from the seed, each of them as one block with all its repeats; where there are none, every
    block is one repeat. What is next depends only on what finished blocks showed, so a run resumes by being asked again.
    """

    def __init__(
        self, series: Series, rule: Callable[[], Rule], items: Sequence[str], repeats: int, seed: int, most: int | None
    ) -> None:
        self._series, self._make, self._repeats = series, rule, repeats if items else 1
        self._items = Random(f"{seed}|items").sample(list(items), len(items))
        bound = most or (len(items) if items else MOST_BLOCKS)
        self._end = min(bound, len(items)) if items else bound
        self._begin()

    def _begin(self) -> None:
        self._rule = self._make()
        self._blocks: list[list[MatchSpec]] = []
        self._matches = self._taken = 0
        self._batch()

    @property
    def opening(self) -> MatchSpec:
        return self._blocks[0][0]

    @property
    def outlook(self) -> str:
        return self._rule.outlook

    def cautions(self) -> Sequence[str]:
        return self._rule.cautions(self._end, len(self._blocks[0]))

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done:
        known = {block.name: block for block in finished}
        if any(block[0].block not in known for block in self._blocks[: self._taken]):
            self._begin()  # asked about an earlier time
        while True:
            waiting = [spec for block in self._blocks[self._taken :] if block[0].block not in known for spec in block]
            if waiting:
                return waiting
            for block in self._blocks[self._taken :]:
                self._rule.take(observed(block, known[block[0].block], self._rule.metrics))
            self._taken = len(self._blocks)
            if done := self._rule.verdict() or self._exhausted():
                return done
            self._batch()

    def _exhausted(self) -> Done | None:
        if self._taken < self._end:
            return None
        if self._taken == len(self._items):
            return Done("items_exhausted", f"all {self._taken} items are played: {self._rule.outlook}")
        return Done("budget", f"{self._taken} blocks are played, the most that were asked for: {self._rule.outlook}")

    def _batch(self) -> None:
        """Draw the next blocks: enough of them to keep the endpoints busy."""
        begun, wanted = self._matches, len(self._blocks) + len(self._blocks) // GROWTH
        while len(self._blocks) < self._end and (self._matches - begun < BUSY or len(self._blocks) < wanted):
            block = self._block(len(self._blocks))
            self._blocks.append(block)
            self._matches += len(block)

    def _block(self, at: int) -> list[MatchSpec]:
        item = self._items[at] if self._items else None
        name, first = (item, 1) if item is not None else (str(at + 1), at + 1)
        found: list[MatchSpec] = []
        for repeat in range(first, first + self._repeats):
            turn = at * self._repeats + repeat - first
            found += self._series.matches(self._matches + len(found), name, item, repeat, turn, self._rule.active)
        return found


def observed(specs: Sequence[MatchSpec], block: Block, metrics: Mapping[str, str]) -> Values:
    """What a block showed of every model in every role; two seats of a match held by one model are averaged first."""
    found: dict[tuple[str, str], list[float]] = {}
    for spec in specs:
        here: dict[tuple[str, str], list[float]] = {}
        for seat, alias in spec.seats.items():
            metric = metrics.get(seat.role)
            value = block.scores[spec.number].get(seat, {}).get(metric) if metric and seat not in spec.idle else None
            if value is not None and math.isfinite(value):
                here.setdefault((seat.role, alias), []).append(value)
        for cell, values in here.items():
            found.setdefault(cell, []).append(fmean(values))
    return found
