"""Sequential plans: play block after block until a stopping rule is met."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Protocol

from parley.plans import Done, FinishedMatches, Marks, MatchSpec
from parley.plans.blocks import BlockMaker
from parley.statistics.estimates import match_means
from parley.statistics.score_table import Observation, ScoreTable
from parley.tables import plural

# the fewest matches that are played at a time, if there are as many: they keep the endpoints busy
BUSY = 64
# at least one block is added for every GROWTH blocks that were played, so that waiting for the last
# match hardly matters
GROWTH = 20
MOST_BLOCKS = 1000  # unless more are asked for
READ_AT_ONCE = 4096  # matches whose scores are read at a time

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
    """Plays block after block, several at a time, until its rule, the items or a bound end it.

    Items come in an order drawn from the seed, each of them as one block with all its repeats;
    where there are none, every block is one repeat. The next blocks depend only on the scores of
    those before them, so a resumed run gets the same blocks again.

    With `at_once`, the next blocks have at least that many matches and do not depend on the blocks
    that were handed out just before them. So both can be played at a time, and the matches are the
    same however many workers play them.
    """

    def __init__(
        self,
        series: BlockMaker,
        rule: Callable[[], StoppingRule],
        items: Sequence[str],
        repeats: int,
        seed: int,
        most: int | None,
        at_once: int | None = None,
    ) -> None:
        self._least, self.ahead = (BUSY, 0) if at_once is None else (at_once, 1)
        self._series, self._make_rule, self._repeats = series, rule, repeats if items else 1
        self._items = Random(f"{seed}|items").sample(list(items), len(items))
        bound = (len(items) if items else MOST_BLOCKS) if most is None else most
        self._end = min(bound, len(items)) if items else bound
        self._rule = rule()
        self._first_block = self._make_block(0, 0)

    @property
    def first_match(self) -> MatchSpec:
        return self._first_block[0]

    @property
    def status_line(self) -> str:
        return self._rule.status_line

    def cautions(self) -> Sequence[str]:
        return self._make_rule().cautions(self._end, len(self._first_block))

    def matches(self, finished: FinishedMatches) -> Iterator[Sequence[MatchSpec] | Done]:
        self._rule = self._make_rule()
        unread: deque[list[list[MatchSpec]]] = deque()  # blocks whose scores are not known yet
        played = matches = 0
        stopping: Done | None = None
        while True:
            blocks = [] if stopping is not None else self._next_blocks(played, matches)
            specs = [spec for block in blocks for spec in block]
            yield specs
            unread.append(blocks)
            played, matches = played + len(blocks), matches + len(specs)
            if len(unread) <= self.ahead:
                continue
            for block, scores in read_blocks(unread.popleft(), finished):
                self._rule.add_block(scores_by_model(block, scores, self._rule.metrics))
            verdict = self._rule.verdict()
            stopping = verdict or stopping
            if any(unread):
                continue  # what has begun is played to its end, and counts
            if stopping is None:
                stopping = self._exhausted(played)
            if stopping is not None:
                yield stopping
                return

    def _exhausted(self, played: int) -> Done | None:
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

    def _next_blocks(self, played: int, matches: int) -> list[list[MatchSpec]]:
        """The next blocks, after some blocks with some matches: enough of them to keep the
        endpoints busy."""
        blocks: list[list[MatchSpec]] = []
        drawn, wanted = 0, played // GROWTH
        while played + len(blocks) < self._end and (drawn < self._least or len(blocks) < wanted):
            block = self._make_block(played + len(blocks), matches + drawn)
            blocks.append(block)
            drawn += len(block)
        return blocks

    def _make_block(self, at: int, matches: int) -> list[MatchSpec]:
        """One block, numbered after the matches before it."""
        item = self._items[at] if self._items else None
        name, first = (item, 1) if item is not None else (str(at + 1), at + 1)
        found: list[MatchSpec] = []
        for repeat in range(first, first + self._repeats):
            turn = at * self._repeats + repeat - first
            found += self._series.matches(
                matches + len(found), name, item, repeat, turn, self._rule.is_wanted
            )
        return found


def read_blocks(
    blocks: Sequence[Sequence[MatchSpec]], finished: FinishedMatches
) -> Iterator[tuple[Sequence[MatchSpec], Mapping[int, Marks]]]:
    """Finished blocks with the scores of their matches. Scores of several blocks are read at
    once."""
    scores: Mapping[int, Marks] = {}
    last = 0
    for block in blocks:
        if block[-1].number > last:
            last = max(block[-1].number, block[0].number + READ_AT_ONCE)
            scores = finished.scores_between(block[0].number, last)
        yield block, scores


def scores_by_model(
    specs: Sequence[MatchSpec], scores: Mapping[int, Marks], metrics: Mapping[str, str]
) -> Values:
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
            scores[spec.number].get(seat, {}).get(metric),
        )
        for spec in specs
        for seat, alias in spec.seats.items()
        if seat not in spec.unscored and (metric := metrics.get(seat.role))
    ]
    return {
        (role, alias): by_block[specs[0].block]
        for (_, role, alias), by_block in match_means(ScoreTable.of(rows)).items()
    }
