"""Means by block as columns of numbers. A run may have a million blocks: as dicts, the means of a
few models would take hundreds of megabytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import ItemsView, Iterator, Mapping, Set, ValuesView
from itertools import compress


class BlockNames:
    """Blocks by number, in the order in which they are first met."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found

    def find(self, name: str) -> int | None:
        """The number of a block; None if there is no such block."""
        return self._numbers.get(name)


class BlockMeans(Mapping[str, float]):
    """Means by block, in the order of the blocks' numbers."""

    def __init__(self, names: BlockNames, block: array[int], value: array[float]) -> None:
        """`block` are the numbers of the blocks that have a mean, ascending."""
        self.names, self.block, self.value = names, block, value

    def __len__(self) -> int:
        return len(self.block)

    def __iter__(self) -> Iterator[str]:
        return map(self.names.names.__getitem__, self.block)

    def __getitem__(self, name: str) -> float:
        number = self.names.find(name)
        if number is not None:
            at = bisect_left(self.block, number)
            if at < len(self.block) and self.block[at] == number:
                return self.value[at]
        raise KeyError(name)

    def select(self, blocks: Set[int]) -> BlockMeans:
        """The means of the blocks with these numbers."""
        chosen = bytes(map(blocks.__contains__, self.block))
        block = array("i", compress(self.block, chosen))
        return BlockMeans(self.names, block, array("d", compress(self.value, chosen)))

    def values(self) -> ValuesView[float]:
        return MeanValues(self)

    def items(self) -> ItemsView[str, float]:
        return MeanItems(self)


class MeanValues(ValuesView[float]):
    """The means alone; they are not looked up by name."""

    _mapping: BlockMeans

    def __iter__(self) -> Iterator[float]:
        return iter(self._mapping.value)


class MeanItems(ItemsView[str, float]):
    """Blocks and their means; the means are not looked up by name."""

    _mapping: BlockMeans

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return zip(self._mapping, self._mapping.value, strict=True)


class BlockSums:
    """Adds up values by block."""

    def __init__(self, names: BlockNames) -> None:
        self.names = names
        self._sums, self._counts = array("d"), array("q")

    def add(self, block: int, value: float) -> None:
        """`block` is the number of the block."""
        if block >= len(self._sums):
            new = bytes(8 * (block + 1 - len(self._sums)))
            self._sums.frombytes(new)
            self._counts.frombytes(new)
        self._sums[block] += value
        self._counts[block] += 1

    def count(self) -> int:
        """How many values were added."""
        return sum(self._counts)

    def means(self) -> BlockMeans:
        """The means of the blocks that have values."""
        numbers = array("i", compress(range(len(self._counts)), self._counts))
        pairs = zip(self._sums, self._counts, strict=True)
        return BlockMeans(
            self.names, numbers, array("d", (total / count for total, count in pairs if count))
        )


def share_blocks(
    ours: Mapping[str, float], theirs: Mapping[str, float]
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """The means of both sides on the blocks that both have, in the order of ours."""
    if not isinstance(ours, BlockMeans) or not isinstance(theirs, BlockMeans):
        shared = [block for block in ours if block in theirs]
        return {block: ours[block] for block in shared}, {block: theirs[block] for block in shared}
    if ours.names is theirs.names and ours.block == theirs.block:
        return ours, theirs
    if ours.names is not theirs.names:
        return share_blocks(dict(ours), dict(theirs))
    both = set(ours.block).intersection(theirs.block)
    return ours.select(both), theirs.select(both)
