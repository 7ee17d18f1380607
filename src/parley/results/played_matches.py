"""The matches of a run that have ended, as columns of what results need of all of them at once."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from parley.results.score_columns import LazyRows, select_values
from parley.statistics.block_means import BlockNames
from parley.statistics.identical_repeats import ENOUGH
from parley.store import MatchRow
from parley.store.reader import RunReader


@dataclass(frozen=True)
class PlayedMatches:
    """Matches that have ended, by number."""

    blocks: BlockNames
    open_blocks: frozenset[int]  # blocks of which a match has not ended
    stages: list[tuple[int, str]]  # the stages and arms of the plan `evolve`
    items: list[str | None]
    number: array[int]
    block: array[int]
    repeat: array[int]
    stage: array[int]  # the place in `stages`
    item: array[int]  # the place in `items`

    @classmethod
    def read(cls, matches: Iterable[MatchRow]) -> PlayedMatches:
        """The matches that a reader yields, by number."""
        blocks, unfinished = BlockNames(), set[int]()
        stages: dict[tuple[int, str], int] = {}
        items: dict[str | None, int] = {}
        number, block, repeat = array("q"), array("i"), array("q")
        stage, item = array("i"), array("i")
        for match in matches:
            at = blocks.number(match.block)
            if not match.has_ended:
                unfinished.add(at)
                continue
            number.append(match.number)
            block.append(at)
            repeat.append(match.repeat)
            stage.append(stages.setdefault((match.stage, match.arm), len(stages)))
            item.append(items.setdefault(match.item, len(items)))
        return cls(
            blocks,
            frozenset(unfinished),
            list(stages),
            list(items),
            number,
            block,
            repeat,
            stage,
            item,
        )

    def __len__(self) -> int:
        return len(self.number)

    def __contains__(self, number: object) -> bool:
        at = bisect_left(self.number, number) if isinstance(number, int) else len(self)
        return at < len(self) and self.number[at] == number

    def select(self, kept: Iterable[Any]) -> PlayedMatches:
        """The matches for which `kept` is true."""
        chosen = bytes(map(bool, kept))
        return replace(
            self,
            number=select_values(self.number, chosen),
            block=select_values(self.block, chosen),
            repeat=select_values(self.repeat, chosen),
            stage=select_values(self.stage, chosen),
            item=select_values(self.item, chosen),
        )

    def in_whole_blocks(self) -> PlayedMatches:
        """Those in blocks of which all matches have ended."""
        return self.select(block not in self.open_blocks for block in self.block)

    def in_stages(self, wanted: Callable[[int, str], bool]) -> PlayedMatches:
        """Those of some stages and arms."""
        chosen = [wanted(*each) for each in self.stages]
        return self.select(map(chosen.__getitem__, self.stage))

    def stages_and_arms(self) -> list[tuple[int, str]]:
        """The stages and arms that have matches."""
        return [self.stages[at] for at in sorted(set(self.stage))]

    def rows(self, reader: RunReader) -> LazyRows[MatchRow]:
        """These matches, read again each time."""
        return LazyRows(lambda: self._select_rows(reader.matches()), len(self))

    def _select_rows(self, rows: Iterable[MatchRow]) -> Iterator[MatchRow]:
        """Those of a run's matches, by number, that are among these."""
        wanted = iter(self.number)
        number = next(wanted, None)
        for row in rows:
            if number is None:
                return
            if row.number == number:
                yield row
                number = next(wanted, None)

    def count_blocks(self) -> int:
        return len(set(self.block))

    def has_repeated_item(self) -> bool:
        """Whether an item was played in at least `ENOUGH` blocks and repeats: only then can models
        be found to be deterministic."""
        plays = array("i", bytes(4 * len(self.items)))
        seen = set[int]()
        for item, block, repeat in zip(self.item, self.block, self.repeat, strict=True):
            play = hash((item, block, repeat))
            if play not in seen:
                seen.add(play)
                plays[item] += 1
                if plays[item] >= ENOUGH:
                    return True
        return False
