"""Audit check: every contestant held every seat and played every item equally often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from parley.store import MatchRow
from parley.store.config import Config
from parley.tables import plural

Place = tuple[str, str]  # an item (or a block, or none), and a role or a seat
Matches = Sequence[MatchRow]


def seats_rotate(config: Config, matches: Matches) -> bool:
    """Whether all contestants play in one match and positions rotate from block to block. Then the
    counts need not be exactly equal."""
    tables = Counter((match.block, match.repeat) for match in matches)
    rotating = config.plan in ("together", "cycles", "evolve")
    return rotating and all(count == 1 for count in tables.values())


def find_imbalance(
    config: Config, roles: Mapping[str, str], matches: Matches
) -> Iterator[tuple[str, str]]:
    """Contestants that held a role or a seat, or played an item, more often than others."""
    rotates = seats_rotate(config, matches)
    whole: dict[str, Counter[str]] = {}
    parts: dict[Place, Counter[str]] = {}
    for match in matches:
        on = f"item {match.item}" if match.item is not None else f"block {match.block}"
        for seat, alias in match.seats.items():
            role = seat.role
            if roles[role] != "contestant":
                continue
            for place in dict.fromkeys((role, seat.key)):
                whole.setdefault(place, Counter())[alias] += 1
                if place == role or not rotates:
                    parts.setdefault((place, on), Counter())[alias] += 1
    for place, count in sorted(whole.items()):
        if measure_spread(config, count) > (1 if rotates and place not in roles else 0):
            yield (
                "balance",
                f"models played unequal numbers of matches as {place}: "
                f"{format_counts(config, count)}",
            )
    odd: dict[str, list[str]] = {}
    for (place, on), count in sorted(parts.items()):
        if measure_spread(config, count) > 0:
            odd.setdefault(place, []).append(f"{on}: {format_counts(config, count)}")
    for place, found in odd.items():
        yield (
            "items",
            f"models played unequal numbers of matches as {place} on {found[0]}"
            + (f"; {plural(len(found) - 1, 'more case')}" if len(found) > 1 else ""),
        )


def measure_spread(config: Config, count: Counter[str]) -> int:
    times = [count[alias] for alias in config.contestants]
    return max(times) - min(times)


def format_counts(config: Config, count: Counter[str]) -> str:
    return ", ".join(f"{alias} {count[alias]}" for alias in config.contestants)
