"""A sequence of planned matches that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from parley.plans import MatchSpec


class PlannedMatches(Sequence[MatchSpec]):
    """The matches of some groups, such as the repeats of an item. All groups have equally many
    matches. Only the group that was used last is kept."""

    def __init__(self, groups: int, size: int, make: Callable[[int], Sequence[MatchSpec]]) -> None:
        """`make` returns the matches of one group; the first group has the number 0."""
        self._groups, self._size, self._make = groups, size, make
        self._last: tuple[int, Sequence[MatchSpec]] = -1, ()

    def __len__(self) -> int:
        return self._groups * self._size

    @overload
    def __getitem__(self, at: int) -> MatchSpec: ...

    @overload
    def __getitem__(self, at: slice) -> list[MatchSpec]: ...

    def __getitem__(self, at: int | slice) -> MatchSpec | list[MatchSpec]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(f"there are {len(self)} planned matches, so there is no match {at}")
        group, within = divmod(place, self._size)
        if self._last[0] != group:
            self._last = group, self._make(group)
        return self._last[1][within]

    def __iter__(self) -> Iterator[MatchSpec]:
        for group in range(self._groups):
            yield from self._make(group)
