"""Sequential plans: play block after block until a stopping rule is met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Protocol

from parley.plans import Block, Done, MatchSpec
from parley.plans.blocks import BlockMaker
from parley.statistics.estimates import Observation, match_means
from parley.tables import plural

BUSY = 64  # the fewest matches of a batch, if there are as many: they keep the endpoints busy
# a batch has at least one block for every GROWTH blocks that were played, so that waiting for its
# last match hardly matters
GROWTH = 20
MOST_BLOCKS = 1000  # unless more are asked for

# by role and alias, the score of every repeat of a block
Values = Mapping[tuple[str, str], Sequence[float]]


class StoppingRule(Protocol):
    """Decides when a run has enough blocks, and which models still need more."""

    @property
    def metrics(self) -> Mapping[str, str]:
        """The metric that the rule uses, by role."""
        ...

    @property
    def status_line(self) -> str:
        """The progress in a few words."""
        ...

    def cautions(self, most: int, matches: int) -> Sequence[str]:
        """What to expect of at most `most` blocks of `matches` matches each."""
        ...

    def is_wanted(self, role: str, alias: str) -> bool:
        """Whether a model's result in a role is still wanted."""
        ...

    def add_block(self, block: Values) -> None:
        """Add the scores of one more block."""
        ...

    def verdict(self) -> Done | None:
        """How the run ends, if enough has been played."""
        ...


class SequentialPlan:
    """Plays block after block, in batches, until its rule, the items or a bound end it.

    Items come in an order drawn from the seed, each of them as one block with all its repeats;
    where there are none, every block is one repeat. What is next depends only on what finished
    blocks showed, so a run resumes by being asked again.
    """

    def __init__(
        self,
        series: BlockMaker,
        rule: Callable[[], StoppingRule],
        items: Sequence[str],
        repeats: int,
        seed: int,
        most: int | None,
    ) -> None:
        self._series, self._make, self._repeats = series, rule, repeats if items else 1
        self._items = Random(f"{seed}|items").sample(list(items), len(items))
        bound = (len(items) if items else MOST_BLOCKS) if most is None else most
        self._end = min(bound, len(items)) if items else bound
        self._begin()

    def _begin(self) -> None:
        self._rule = self._make()
        self._blocks: list[list[MatchSpec]] = []
        self._taken: list[Block] = []
        self._matches = 0
        self._batch()

    @property
    def first_match(self) -> MatchSpec:
        return self._blocks[0][0]

    @property
    def status_line(self) -> str:
        return self._rule.status_line

    def cautions(self) -> Sequence[str]:
        return self._rule.cautions(self._end, len(self._blocks[0]))

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done:
        known = {block.name: block for block in finished}
        if any(known.get(block.name) != block for block in self._taken):
            self._begin()  # the blocks are those of another time, or of another run
        while True:
            new = self._blocks[len(self._taken) :]
            waiting = [
                spec for specs in new if not is_block_finished(specs, known) for spec in specs
            ]
            if waiting:
                return waiting
            for specs in new:
                block = known[specs[0].block]
                self._taken.append(block)
                self._rule.add_block(scores_by_model(specs, block, self._rule.metrics))
            if done := self._rule.verdict() or self._exhausted():
                return done
            self._batch()

    def _exhausted(self) -> Done | None:
        played = len(self._taken)
        if played < self._end:
            return None
        if played == len(self._items):
            return Done(
                "items_exhausted", f"all {played} items have been played: {self._rule.status_line}"
            )
        return Done(
            "budget",
            f"the limit of {plural(played, 'block')} is reached: {self._rule.status_line}",
        )

    def _batch(self) -> None:
        """Draw the next blocks: enough of them to keep the endpoints busy."""
        begun, wanted = self._matches, len(self._blocks) + len(self._blocks) // GROWTH
        while len(self._blocks) < self._end and (
            self._matches - begun < BUSY or len(self._blocks) < wanted
        ):
            block = self._block(len(self._blocks))
            self._blocks.append(block)
            self._matches += len(block)

    def _block(self, at: int) -> list[MatchSpec]:
        item = self._items[at] if self._items else None
        name, first = (item, 1) if item is not None else (str(at + 1), at + 1)
        found: list[MatchSpec] = []
        for repeat in range(first, first + self._repeats):
            turn = at * self._repeats + repeat - first
            found += self._series.matches(
                self._matches + len(found), name, item, repeat, turn, self._rule.is_wanted
            )
        return found


def is_block_finished(specs: Sequence[MatchSpec], known: Mapping[str, Block]) -> bool:
    """Whether all planned matches of a block have scores."""
    block = known.get(specs[0].block)
    return block is not None and all(spec.number in block.scores for spec in specs)


def scores_by_model(specs: Sequence[MatchSpec], block: Block, metrics: Mapping[str, str]) -> Values:
    """The scores of a block for every model and role that count, one for every repeat; missing ones
    are left out.

    Matches of one repeat share their seed, so that they share the random draws of the task.
    """
    rows = [
        Observation(
            spec.block,
            spec.repeat,
            alias,
            seat.role,
            metric,
            block.scores[spec.number].get(seat, {}).get(metric),
        )
        for spec in specs
        for seat, alias in spec.seats.items()
        if seat not in spec.unscored and (metric := metrics.get(seat.role))
    ]
    return {
        (role, alias): by_block[block.name]
        for (_, role, alias), by_block in match_means(rows).items()
    }
