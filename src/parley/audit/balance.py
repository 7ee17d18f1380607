"""Audit check: every contestant held every seat and played every item equally often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from parley.store.config import Config
from parley.store.types import SeatingCount
from parley.tables import plural

ROTATING = ("together", "cycles", "evolve")  # plans in which positions may rotate


def find_imbalance(
    config: Config, roles: Mapping[str, str], seatings: Iterable[SeatingCount], rotates: bool
) -> Iterator[tuple[str, str]]:
    """Contestants that held a role or a seat, or played an item, more often than others, in one
    stage of one arm. Seatings come item by item.

    `rotates`: all contestants play in one match, and positions rotate from block to block. Then the
    counts need not be exactly equal.
    """
    whole: dict[str, Counter[str]] = {}
    odd: dict[str, OddItems] = {}
    for item, group in groupby(seatings, attrgetter("place")):
        parts: dict[str, Counter[str]] = {}
        for seating in group:
            for seat, alias in seating.seats.items():
                if roles[seat.role] == "contestant":
                    for place in dict.fromkeys((seat.role, seat.key)):
                        parts.setdefault(place, Counter())[alias] += seating.matches
        for place, count in parts.items():
            whole.setdefault(place, Counter()).update(count)
            counted = place in roles or not rotates
            if counted and measure_spread(config, count) > 0:
                odd.setdefault(place, OddItems()).add(item, format_counts(config, count))
    for place, count in sorted(whole.items()):
        if measure_spread(config, count) > (1 if rotates and place not in roles else 0):
            yield (
                "balance",
                f"models played unequal numbers of matches as {place}: "
                f"{format_counts(config, count)}",
            )
    for place, found in sorted(odd.items()):
        yield "items", f"models played unequal numbers of matches as {place} on {found}"


class OddItems:
    """Items that contestants played unequally often: the first by name, and how many there are."""

    def __init__(self) -> None:
        self._first, self._counts, self._more = "", "", -1

    def add(self, item: str, counts: str) -> None:
        """Add an item with the number of matches of each contestant."""
        if self._more < 0 or item < self._first:
            self._first, self._counts = item, counts
        self._more += 1

    def __str__(self) -> str:
        more = f"; {plural(self._more, 'more case')}" if self._more else ""
        return f"{self._first}: {self._counts}{more}"


def measure_spread(config: Config, count: Counter[str]) -> int:
    times = [count[alias] for alias in config.contestants]
    return max(times) - min(times)


def format_counts(config: Config, count: Counter[str]) -> str:
    return ", ".join(f"{alias} {count[alias]}" for alias in config.contestants)
