"""The matches of a run that have ended, as columns of what results need of all of them at once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parley.results.score_columns import BlockNames, distinct_rows
from parley.store import MatchRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PlayedMatches:
    """Matches that have ended, by number."""

    blocks: BlockNames
    open_blocks: frozenset[int]  # blocks of which a match has not ended
    rounds: list[tuple[int, str]]  # the stages and arms of the plan `evolve`
    items: list[str | None]
    number: NDArray[np.int64]
    block: NDArray[np.int32]
    repeat: NDArray[np.int64]
    round: NDArray[np.int32]  # the place in `rounds`
    item: NDArray[np.int32]  # the place in `items`

    @classmethod
    def read(cls, matches: Iterable[MatchRow]) -> PlayedMatches:
        """The matches that a reader yields, by number."""
        blocks, unfinished = BlockNames(), set[int]()
        rounds: dict[tuple[int, str], int] = {}
        items: dict[str | None, int] = {}
        number, block, repeat = array("q"), array("i"), array("q")
        round, item = array("i"), array("i")
        for match in matches:
            at = blocks.number(match.block)
            if not match.has_ended:
                unfinished.add(at)
                continue
            number.append(match.number)
            block.append(at)
            repeat.append(match.repeat)
            round.append(rounds.setdefault((match.stage, match.arm), len(rounds)))
            item.append(items.setdefault(match.item, len(items)))
        return cls(
            blocks,
            frozenset(unfinished),
            list(rounds),
            list(items),
            np.frombuffer(number, np.int64),
            np.frombuffer(block, np.int32),
            np.frombuffer(repeat, np.int64),
            np.frombuffer(round, np.int32),
            np.frombuffer(item, np.int32),
        )

    def __len__(self) -> int:
        return len(self.number)

    def __contains__(self, number: object) -> bool:
        at = int(np.searchsorted(self.number, number)) if isinstance(number, int) else len(self)
        return at < len(self) and bool(self.number[at] == number)

    def select(self, kept: Mask) -> PlayedMatches:
        """Some of the matches."""
        return PlayedMatches(
            self.blocks,
            self.open_blocks,
            self.rounds,
            self.items,
            self.number[kept],
            self.block[kept],
            self.repeat[kept],
            self.round[kept],
            self.item[kept],
        )

    def in_whole_blocks(self) -> Mask:
        """Which of them are in blocks that have ended."""
        whole: Mask = ~np.isin(self.block, list(self.open_blocks))
        return whole

    def in_rounds(self, wanted: Callable[[int, str], bool]) -> Mask:
        """Which of them are in these stages and arms."""
        chosen = np.array([wanted(*each) for each in self.rounds], dtype=bool)
        found: Mask = chosen[self.round]
        return found

    def stages_and_arms(self) -> list[tuple[int, str]]:
        """The stages and arms that have matches."""
        return [self.rounds[at] for at in np.unique(self.round).tolist()]

    def has(self, numbers: NDArray[np.int64]) -> Mask:
        """Which of these numbers are numbers of these matches."""
        if not len(self):
            return np.zeros(len(numbers), dtype=bool)
        at = np.searchsorted(self.number, numbers).clip(max=len(self) - 1)
        found: Mask = self.number[at] == numbers
        return found

    def filter(self, rows: Iterable[MatchRow]) -> Iterator[MatchRow]:
        """Those of a run's matches, by number, that are among these."""
        wanted = iter(self.number.tolist() if len(self) < 100_000 else self.number)
        number = next(wanted, None)
        for row in rows:
            if number is None:
                return
            if row.number == number:
                yield row
                number = next(wanted, None)

    def most_plays_of_an_item(self) -> int:
        """The largest number of different blocks and repeats that one item was played in."""
        item, _, _ = distinct_rows(self.item, self.block, self.repeat)
        return int(np.bincount(item).max()) if len(self) else 0

    def count_blocks(self) -> int:
        return len(np.unique(self.block))
