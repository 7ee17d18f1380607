"""A set of match numbers that takes a few bits for each."""

from __future__ import annotations

from collections.abc import Iterable

BITS = 512  # of one page


class NumberSet:
    """Whole numbers, mostly without large gaps."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._pages: dict[int, int] = {}
        self._count = 0
        for number in numbers:
            self.add(number)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        return bool(self._pages.get(number // BITS, 0) >> number % BITS & 1)

    def add(self, number: int) -> None:
        if number not in self:
            page = number // BITS
            self._pages[page] = self._pages.get(page, 0) | 1 << number % BITS
            self._count += 1
