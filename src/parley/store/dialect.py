"""Parts of queries: those that both databases share, and those in which they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from parley.store.types import ENDED

SMALLEST, LARGEST = -(2**63), 2**63 - 1  # integers in a database
# Sums that are stored are the same in every store, also if endpoints report absurdly large counts:
# SQLite adds them up as floats, which are exact up to this number.
LARGEST_SUM = 2**53
AT_ONCE = 256  # matches whose record is read at a time
ENDED_MATCHES = f"state IN ({', '.join(map(repr, ENDED))})"
ORDER_KEYS = {  # by the order of a list of matches: what has an index in both databases
    "seconds": "COALESCE(ended - began, -1)",
    "tokens": "COALESCE(tokens, -1)",
}


class Dialect(NamedTuple):
    """The parts of queries that are written differently for each database."""

    seats: str  # the seats of a match `m` as rows `s` with a key and a value
    chosen: str  # a JSON list of numbers as rows `chosen` with a value
    number_list: str  # the column `number` of all rows as a JSON list
    add_up: Callable[[str], str]  # the sum of a column; NULL if all values are NULL
    contains: Callable[[str, str], str]  # whether a text contains another one
    length: Callable[[str], str]  # the number of characters of a recorded text
    use_index: Callable[[str], str]  # which index of `matches` a query uses, after the table
    not_indexed: str  # in front of a condition that must not choose the index
