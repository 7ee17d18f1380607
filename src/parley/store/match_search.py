"""A search for matches of a run: filters, an order, and the place where a page begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from parley.store.types import MatchRow

MatchOrder = Literal["number", "score", "seconds", "tokens"]
ORDERS: tuple[MatchOrder, ...] = get_args(MatchOrder)
PAGE = 50  # matches


class MatchPlace(NamedTuple):
    """A place in a list of matches: pages begin after or before it."""

    key: float  # what the list is ordered by
    number: int
    seat: str = ""  # the seat that has this score, if the order is `score`


@dataclass(frozen=True)
class MatchSearch:
    """Which matches are wanted, and in which order.

    With `metric`, a match fits if a seat has a score of this metric between `low` and `high`. If
    `model` or `role` is given as well, it must be a seat of this model or role. The order `score`
    needs a metric. It takes the lowest of the scores that fit if it ascends, and else the highest.
    """

    model: str = ""
    role: str = ""
    item: str | None = None
    metric: str = ""
    low: float | None = None
    high: float | None = None
    violations: bool = False  # only matches with a violation
    states: frozenset[str] = frozenset()  # only matches in one of these states
    apart: float | None = None  # judges of one seat differ by at least this much
    order: MatchOrder = "number"
    descending: bool = False
    after: MatchPlace | None = None
    before: MatchPlace | None = None
    most: int = PAGE


@dataclass(frozen=True, slots=True)
class FoundMatch:
    """A match, where it stands in the list, and what its record adds up to."""

    row: MatchRow
    place: MatchPlace
    violations: int | None  # None: it has not ended
    apart: float | None  # largest difference of two judges on one seat; None: fewer than two votes
    tokens: int | None  # input and output of all calls; None: it has not ended, or no call counted


@dataclass(frozen=True)
class FoundMatches:
    """One page of a list of matches."""

    matches: tuple[FoundMatch, ...]
    previous: MatchPlace | None  # the page before this one ends before this place
    next: MatchPlace | None  # the next page begins after this place
    # The search stopped after this many matches, before the page was full; `next` goes on.
    looked_at: int | None = None
