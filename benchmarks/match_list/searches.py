"""The pages that the benchmark asks for: every filter with every range of scores and order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from parley.store.match_search import ORDERS

FILTERS: tuple[dict[str, str], ...] = (
    {},
    {"model": "fair"},
    {"model": "fair", "role": "proofreader"},
    {"item": "en-zh/lighthouse"},
    {"violations": "1"},
    {"aborted": "1"},
    {"apart": "2"},
    {"model": "weak", "violations": "1", "apart": "2"},
    {"model": "weak", "role": "translator", "apart": "9"},  # few or none
)
RANGES: tuple[dict[str, str], ...] = (
    {},
    {"metric": "bleu", "low": "0.2", "high": "0.9"},
    {"metric": "bleu", "low": "0.7999", "high": "0.8"},
    {"metric": "judge", "high": "1"},
)


def list_queries() -> Iterator[dict[str, str]]:
    """The queries, in both directions of each order."""
    for given, within, order, down in product(FILTERS, RANGES, ORDERS, ("", "1")):
        yield {**given, **within, "order": order, "down": down}
