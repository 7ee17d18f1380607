"""The searches that the benchmark measures: each filter and order alone, and together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from parley.store.match_search import ORDERS, MatchSearch

FILTERS: tuple[dict[str, object], ...] = (
    {},
    {"model": "fair"},
    {"model": "fair", "role": "proofreader"},
    {"item": "en-zh/lighthouse"},
    {"violations": True},
    {"states": frozenset(["aborted", "failed"])},
    {"states": frozenset(["failed"])},  # none
    {"apart": 2.0},
    {"model": "weak", "violations": True, "apart": 2.0},
    {"model": "weak", "role": "translator", "apart": 9.0},  # few or none
)
RANGES: tuple[dict[str, object], ...] = (
    {},
    {"metric": "bleu", "low": 0.2, "high": 0.9},
    {"metric": "bleu", "low": 0.7999, "high": 0.8},
    {"metric": "judge", "high": 1.0},
)


def list_searches() -> Iterator[MatchSearch]:
    """Every filter with every range and order, in both directions."""
    for given, within, order, descending in product(FILTERS, RANGES, ORDERS, (False, True)):
        wanted = {**given, **within}
        if order == "score":
            wanted.setdefault("metric", "bleu")
        yield MatchSearch(**wanted, order=order, descending=descending)  # type: ignore[arg-type]
