"""Finds one page of matches by keyset, with a bound on the work for a page.

A page first walks along an index in its order and looks at a few hundred matches. If these do not
fill it, all filters but scores use one other index: a scan of it gives the exact page. If a search
needs scores as well and the walk found few places, the page looks at the matches that pass the more
selective filter. If those are too many, or the walk found several places, it walks further and may
end early.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from parley.store.dialect import ORDER_KEYS, Dialect
from parley.store.match_search import MatchPlace, MatchSearch

FEW = 2_000  # matches that are looked at one by one for one page
FIRST_STEPS, MORE_STEPS = 500, 2_000  # rows of an index that are walked for one page
KEYS = {"number": "m.number", **ORDER_KEYS}  # matches without what they are ordered by come first
# the index for lists begins with the state: a search for an item needs each state that occurs
EVERY_STATE = (
    "m.state IN (WITH RECURSIVE states(state) AS (SELECT MIN(state) FROM matches UNION ALL "
    "SELECT (SELECT MIN(state) FROM matches WHERE state > states.state) FROM states "
    "WHERE states.state IS NOT NULL) SELECT state FROM states)"
)
LAST = "\U0010ffff"  # comes after the name of every seat


class Condition(NamedTuple):
    """A condition in SQL, and its values."""

    sql: str
    values: tuple[Any, ...] = ()


class FoundPlaces(NamedTuple):
    """The places on a page, in order, and how far the search has come."""

    places: list[MatchPlace]
    more: bool  # more matches may follow
    end: MatchPlace | None = None  # where a search ended early
    looked_at: int | None = None


class PlaceFinder:
    """Finds the places of one page, in the direction in which it is read."""

    def __init__(
        self,
        run_query: Callable[..., Iterator[Any]],
        dialect: Dialect,
        wanted: MatchSearch,
        seats: Mapping[str, int],
    ) -> None:
        """`seats`: how many each role has."""
        self._run_query, self._dialect, self._wanted = run_query, dialect, wanted
        self._start = wanted.after or wanted.before
        self._falls = wanted.descending != (wanted.before is not None)
        self._filters = list(filter_matches(wanted, seats, dialect))
        # SQLite would often choose another index than the one that needs the fewest rows
        self._listed = dialect.use_index("matches_listed")
        is_item_only = wanted.item is not None and not wanted.states
        every_state = [Condition(EVERY_STATE)] if is_item_only else []
        self._listing = join_conditions([*every_state, *self._filters])
        self._by_score = wanted.order == "score"
        if self._by_score:
            self._key, self._place, self._ordered = "s.value", "s.value, s.match, s.seat", ""
            self._fits = fit_score(wanted, self._filters, dialect)
        else:
            self._key = KEYS[wanted.order]
            self._place = f"{self._key}, m.number"
            has_index = wanted.order in ORDER_KEYS
            self._ordered = dialect.use_index(f"matches_by_{wanted.order}") if has_index else ""
            scored = [fit_some_score(wanted, dialect)] if wanted.metric else []
            self._fits = join_conditions([*self._filters, *scored])

    def find(self) -> FoundPlaces:
        if not self._wanted.metric and not self._filters:
            return self._page_of(self._select("matches m", self._ordered, []))
        walked = self._walk(FIRST_STEPS, self._start, [])
        if walked.looked_at is None:
            return walked
        if not self._wanted.metric:
            return self._page_of(self._select("matches m", self._listed, [self._listing]))
        share = len(walked.places) / FIRST_STEPS
        if share * (FIRST_STEPS + MORE_STEPS) < self._wanted.most / 2:
            numbers = self._few_numbers()
            if numbers is not None:
                return self._page_of(self._look_at(numbers))
        return self._walk(MORE_STEPS, walked.end, walked.places)

    def way_back(self, places: list[MatchPlace]) -> MatchPlace | None:
        """The place from which the page before this one is read, in the other direction; None for
        the first page."""
        if self._start is None:
            return None
        if places:
            return places[0]
        key, number, _ = self._start  # the page is empty, but the place where it starts is not
        return MatchPlace(key, number - 1, LAST) if self._falls else MatchPlace(key, number + 1)

    def _page_of(self, places: Iterable[MatchPlace]) -> FoundPlaces:
        found = list(places)
        return FoundPlaces(found[: self._wanted.most], len(found) > self._wanted.most)

    def _order_from(self, start: MatchPlace | None) -> tuple[list[Condition], str]:
        """The places that follow a place, as conditions and an order."""
        side, direction = ("<", "DESC") if self._falls else (">", "ASC")
        places = [self._key, "s.match", "s.seat"] if self._by_score else [self._key, "m.number"]
        if self._wanted.order == "number":
            del places[0]
        order = ", ".join(f"{each} {direction}" for each in places)
        if start is None:
            return [], order
        if self._wanted.order == "number":
            return [Condition(f"m.number {side} ?", (start.number,))], order
        values = tuple(start[: len(places)])
        following = Condition(
            f"({', '.join(places)}) {side} ({', '.join('?' * len(places))})", values
        )
        # this condition can use an index of an expression, the other one cannot
        return [Condition(f"{self._key} {side}= ?", values[:1]), following], order

    def _select(
        self, source: str, index: str, conditions: Sequence[Condition], values: tuple[Any, ...] = ()
    ) -> list[MatchPlace]:
        """The first places of the page that fulfil these conditions, and one more. `values`: those
        of the source."""
        following, order = self._order_from(self._start)
        where = join_conditions([*conditions, *following])
        rows = self._run_query(
            f"SELECT {self._place} FROM {source} {index} WHERE {where.sql} "
            f"ORDER BY {order} LIMIT {self._wanted.most + 1}",
            *values,
            *where.values,
        )
        return [MatchPlace(*row) for row in rows]

    def _few_numbers(self) -> str | None:
        """The numbers of the matches that pass the score range or the other filters, as JSON, if
        they are few."""
        found: str | None = None
        if self._wanted.low is not None or self._wanted.high is not None:
            where = join_conditions(filter_scores(self._wanted))
            found = self._numbers("SELECT DISTINCT s.match AS number FROM scores s", where)
        if found is None and self._filters:
            query = f"SELECT m.number FROM matches m {self._listed}"
            found = self._numbers(query, self._listing)
        return found

    def _numbers(self, query: str, where: Condition) -> str | None:
        ((count, numbers),) = self._run_query(
            f"SELECT COUNT(*), {self._dialect.number_list} FROM "
            f"({query} WHERE {where.sql} LIMIT {FEW + 1}) AS found",
            *where.values,
        )
        return numbers if count <= FEW else None

    def _look_at(self, numbers: str) -> list[MatchPlace]:
        """The places of those of these matches that fit."""
        if self._by_score:
            source, number = "scores s", "s.match"
            scored = keep_from_index(filter_scores(self._wanted), self._dialect)
            fits = [*scored, self._fits]
        else:
            source, number, fits = "matches m", "m.number", [self._fits]
        fits.insert(0, Condition(f"{number} = chosen.value"))
        return self._select(f"{self._dialect.chosen} CROSS JOIN {source}", "", fits, (numbers,))

    def _walk(self, steps: int, start: MatchPlace | None, found: list[MatchPlace]) -> FoundPlaces:
        """Walk along the order until the page is full, or for this many steps. `found`: the places
        that an earlier walk found."""
        following, order = self._order_from(start)
        if self._by_score:
            source, along = "scores s", [*filter_scores(self._wanted), *following]
        else:
            source, along = f"matches m {self._ordered}", following
        where = join_conditions(along)
        rows = self._run_query(
            f"SELECT {self._fits.sql}, {self._place} FROM {source} WHERE {where.sql} "
            f"ORDER BY {order} LIMIT {steps}",
            *self._fits.values,
            *where.values,
        )
        places, looked_at, row = list(found), 0, None
        for row in rows:  # SQLite looks at a match when its row is read
            looked_at += 1
            if row[0]:
                places.append(MatchPlace(*row[1:]))
                if len(places) > self._wanted.most:
                    return self._page_of(places)
        if row is None or looked_at < steps:
            return self._page_of(places)
        if len(places) == self._wanted.most:
            return FoundPlaces(places, True)
        before = FIRST_STEPS if start is not self._start else 0
        return FoundPlaces(places, True, MatchPlace(*row[1:]), before + looked_at)


def filter_matches(
    wanted: MatchSearch,
    seats: Mapping[str, int],
    dialect: Dialect,
) -> Iterator[Condition]:
    """The filters that a match `m` passes or not, without its scores."""
    if wanted.states:
        marks = ", ".join("?" * len(wanted.states))
        yield Condition(f"m.state IN ({marks})", tuple(sorted(wanted.states)))
    if wanted.item is not None:
        yield Condition("m.item = ?", (wanted.item,))
    if wanted.violations:
        yield Condition("m.violations > 0")
    if wanted.apart is not None:
        yield Condition("m.apart >= ?", (wanted.apart,))
    if wanted.model:
        # `seats` is compact JSON: a quotation mark inside a name is escaped
        alias = as_json_text(wanted.model)
        keys = [f'"{key}"' for key in seat_keys(wanted.role, seats)] if wanted.role else [""]
        pairs = tuple(f'{key}:"{alias}"' for key in keys)
        has_pair = dialect.contains("m.seats", "?")
        yield Condition(f"({' OR '.join([has_pair] * len(pairs))})", pairs)


def filter_scores(wanted: MatchSearch, score: str = "s") -> Iterator[Condition]:
    """The filters that a score passes or not, apart from the model in its seat. A score with a
    judge was copied from the run that is rejudged."""
    yield Condition(
        f"{score}.metric = ? AND {score}.judge = '' AND {score}.value IS NOT NULL",
        (wanted.metric,),
    )
    if wanted.low is not None:
        yield Condition(f"{score}.value >= ?", (wanted.low,))
    if wanted.high is not None:
        yield Condition(f"{score}.value <= ?", (wanted.high,))
    if wanted.role:
        head = f"{wanted.role}."
        yield Condition(
            f"({score}.seat = ? OR substr({score}.seat, 1, ?) = ?)",
            (wanted.role, len(head), head),
        )


def filter_holder(wanted: MatchSearch, score: str, dialect: Dialect) -> Iterator[Condition]:
    """The filters on the seat of a score in its match `m`: it counts, and the model has it."""
    key = f"'\"' || {score}.seat || '\"'"
    yield Condition(f"(m.unscored IS NULL OR NOT {dialect.contains('m.unscored', key)})")
    if wanted.model:
        has_seat = dialect.contains("m.seats", f"{key} || ?")
        yield Condition(has_seat, (f':"{as_json_text(wanted.model)}"',))


def keep_from_index(conditions: Iterable[Condition], dialect: Dialect) -> Iterator[Condition]:
    """The same conditions on scores of one match. SQLite would use the index by metric, which has
    many more rows."""
    for sql, values in conditions:
        yield Condition(re.sub(r"(\w\.judge = '')", rf"{dialect.not_indexed}\1", sql), values)


def fit_some_score(wanted: MatchSearch, dialect: Dialect) -> Condition:
    """Whether a match `m` has a score that fits."""
    scored = keep_from_index(filter_scores(wanted), dialect)
    fits = join_conditions([*scored, *filter_holder(wanted, "s", dialect)])
    return Condition(
        f"EXISTS (SELECT 1 FROM scores s WHERE s.match = m.number AND {fits.sql})", fits.values
    )


def fit_score(wanted: MatchSearch, filters: Sequence[Condition], dialect: Dialect) -> Condition:
    """Whether the match of a score `s` fits, and this is its first score in the list."""
    scored = keep_from_index(filter_scores(wanted, "o"), dialect)
    others = [*scored, *filter_holder(wanted, "o", dialect)]
    side = ">" if wanted.descending else "<"
    first = join_conditions([*others, Condition(f"(o.value, o.seat) {side} (s.value, s.seat)")])
    fits = join_conditions(
        [
            *filters,
            *filter_holder(wanted, "s", dialect),
            Condition(
                f"NOT EXISTS (SELECT 1 FROM scores o WHERE o.match = m.number AND {first.sql})",
                first.values,
            ),
        ]
    )
    return Condition(
        f"EXISTS (SELECT 1 FROM matches m WHERE m.number = s.match AND {fits.sql})", fits.values
    )


def seat_keys(role: str, seats: Mapping[str, int]) -> list[str]:
    """The keys that the seats of a role may have."""
    return [role, *(f"{role}.{number + 1}" for number in range(seats.get(role, 1)))]


def as_json_text(text: str) -> str:
    """A text as it stands between the quotation marks of a JSON string."""
    return orjson.dumps(text).decode()[1:-1]


def join_conditions(conditions: Iterable[Condition]) -> Condition:
    """Several conditions as one."""
    found = list(conditions)
    values = tuple(value for each in found for value in each.values)
    return Condition(" AND ".join(each.sql for each in found) or "TRUE", values)
