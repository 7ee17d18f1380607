"""Finds one page of matches by keyset, with a bound on the work for a page.

A page first walks along an index in its order and looks at a few hundred matches. If these do not
fill it, all filters but scores use one other index: a scan of it gives the exact page. If a search
needs scores as well, the page looks at the matches that pass the more selective filter. If those
are too many, it walks a little further and ends early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from parley.store.match_search import MatchPlace, MatchSearch
from parley.store.sqlite.schema import ORDER_KEYS

FEW = 2_000  # matches that are looked at one by one for one page
FIRST_STEPS, MORE_STEPS = 500, 2_000  # rows of an index that are walked for one page
BATCH = 250  # rows that are looked at together
KEYS = {  # by order: what a match is ordered by; matches without it come first
    "number": "m.number",
    "seconds": ORDER_KEYS["seconds"],
    "tokens": "COALESCE({tokens}, -1)",
}

LIVE = "s.judge = ''"  # not copied from the run that is rejudged
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
        columns: Mapping[str, str],
        wanted: MatchSearch,
        seats: Mapping[str, int],
        is_indexed: bool = True,
    ) -> None:
        """`columns`: the derived columns of `matches` as SQL; `seats`: how many each role has;
        `is_indexed`: whether the file has the indexes for lists."""
        self._run_query, self._wanted = run_query, wanted
        self._start = wanted.after or wanted.before
        self._falls = wanted.descending != (wanted.before is not None)
        self._key = KEYS.get(wanted.order, "").format(**columns)
        self._filters = list(filter_matches(wanted, columns, seats))
        self._score = list(filter_scores(wanted)) if wanted.metric else []
        # SQLite would often choose another index than the one that needs the fewest rows
        self._listed = "INDEXED BY matches_listed" if is_indexed else ""
        by = f"INDEXED BY matches_by_{wanted.order}" if wanted.order in ORDER_KEYS else ""
        self._ordered = by if is_indexed else ""

    def find(self) -> FoundPlaces:
        if not self._wanted.metric and not self._filters:
            return self._page_of(self._walk_order(self._wanted.most + 1, self._start))
        walked = self._walk(FIRST_STEPS, self._start)
        if walked.looked_at is None:
            return walked
        if not self._wanted.metric:
            return self._page_of(self._list_matches(self._wanted.most + 1))
        numbers = self._few_numbers()
        if numbers is not None:
            found = self._look_at(numbers).values()
            start = self._start
            later = [each for each in found if start is None or self._follows(each, start)]
            return self._page_of(sorted(later, reverse=self._falls))
        return self._walk_on(walked)

    def way_back(self, places: list[MatchPlace]) -> MatchPlace | None:
        """The place from which the page before this one is read, in the other direction; None for
        the first page."""
        if self._start is None:
            return None
        if places:
            return places[0]
        key, number, _ = self._start  # the page is empty, but the place where it starts is not
        return MatchPlace(key, number - 1, LAST) if self._falls else MatchPlace(key, number + 1)

    def _follows(self, place: MatchPlace, start: MatchPlace) -> bool:
        return place < start if self._falls else place > start

    def _page_of(self, places: Iterable[MatchPlace]) -> FoundPlaces:
        found = list(places)
        return FoundPlaces(found[: self._wanted.most], len(found) > self._wanted.most)

    def _walk_order(self, most: int, start: MatchPlace | None) -> list[MatchPlace]:
        """The first matches in the order, whether they pass the filters or not."""
        return self._select_matches([], self._ordered, most, start)

    def _list_matches(self, most: int) -> list[MatchPlace]:
        """The first matches that pass all filters but the score."""
        return self._select_matches(self._filters, self._listed, most, self._start)

    def _select_matches(
        self, filters: Sequence[Condition], index: str, most: int, start: MatchPlace | None
    ) -> list[MatchPlace]:
        conditions = list(filters)
        side, direction = ("<", "DESC") if self._falls else (">", "ASC")
        if start is not None:
            place = start.key, start.number
            if self._wanted.order == "number":
                conditions.append(Condition(f"m.number {side} ?", place[1:]))
            else:
                # the first condition can use the index, the second one cannot
                conditions.append(Condition(f"{self._key} {side}= ?", place[:1]))
                conditions.append(Condition(f"({self._key}, m.number) {side} (?, ?)", place))
        by = "" if self._wanted.order == "number" else f"{self._key} {direction}, "
        where, values = join_conditions(conditions)
        rows = self._run_query(
            f"SELECT {self._key}, m.number FROM matches m {index} WHERE {where} "
            f"ORDER BY {by}m.number {direction} LIMIT {most}",
            *values,
        )
        return [MatchPlace(key, number) for key, number in rows]

    def _few_numbers(self) -> list[int] | None:
        """The numbers of the matches that pass the score range or the other filters, if they are
        few."""
        found: list[int] | None = None
        if self._wanted.low is not None or self._wanted.high is not None:
            where, values = join_conditions(self._score)
            found = self._numbers(f"SELECT DISTINCT s.match FROM scores s WHERE {where}", values)
        if found is None and self._filters:
            where, values = join_conditions(self._filters)
            found = self._numbers(
                f"SELECT m.number FROM matches m {self._listed} WHERE {where}", values
            )
        return found

    def _numbers(self, query: str, values: tuple[Any, ...]) -> list[int] | None:
        found = [number for (number,) in self._run_query(f"{query} LIMIT {FEW + 1}", *values)]
        return found if len(found) <= FEW else None

    def _look_at(self, numbers: Iterable[int]) -> dict[int, MatchPlace]:
        """The places of those of these matches that pass all filters, by number."""
        if not self._wanted.metric:
            where, values = join_conditions(self._filters)
            rows = self._run_query(
                f"SELECT {self._key}, m.number FROM json_each(?) AS chosen "
                f"CROSS JOIN matches m ON m.number = chosen.value WHERE {where}",
                orjson.dumps(list(numbers)).decode(),
                *values,
            )
            return {number: MatchPlace(key, number) for key, number in rows}
        held = Condition("(m.idle IS NULL OR instr(m.idle, '\"' || s.seat || '\"') = 0)")
        conditions = [*self._filters, *self._score, held]
        if self._wanted.model:
            mine = f':"{as_json_text(self._wanted.model)}"'
            conditions.append(Condition("instr(m.seats, '\"' || s.seat || '\"' || ?)", (mine,)))
        where, values = join_conditions(conditions)
        by_score = self._wanted.order == "score"
        key, seat = ("s.value", "s.seat") if by_score else (self._key, "''")
        # the plus keeps SQLite from using the index by metric, which has many more rows
        rows = self._run_query(
            f"SELECT {key}, m.number, {seat} FROM json_each(?) AS chosen "
            "CROSS JOIN matches m ON m.number = chosen.value CROSS JOIN scores s "
            f"ON s.match = m.number WHERE {where.replace(LIVE, '+' + LIVE)}",
            orjson.dumps(list(numbers)).decode(),
            *values,
        )
        best: dict[int, MatchPlace] = {}
        choose = max if self._wanted.descending else min
        for row in rows:
            place = MatchPlace(*row)
            best[place.number] = choose(best.get(place.number, place), place)
        return best

    def _walk(self, steps: int, start: MatchPlace | None) -> FoundPlaces:
        """Walk along the order until the page is full, or for this many steps."""
        if self._wanted.order == "score":
            return self._fill_page(self._walk_scores(steps, start), steps)
        return self._fill_page(self._walk_order(steps, start), steps)

    def _walk_scores(self, steps: int, start: MatchPlace | None) -> list[MatchPlace]:
        """The first scores of the metric in their order."""
        conditions = list(self._score)
        side, direction = ("<", "DESC") if self._falls else (">", "ASC")
        if start is not None:
            conditions.append(Condition(f"(s.value, s.match, s.seat) {side} (?, ?, ?)", start))
        where, values = join_conditions(conditions)
        rows = self._run_query(
            f"SELECT s.value, s.match, s.seat FROM scores s WHERE {where} ORDER BY s.value "
            f"{direction}, s.match {direction}, s.seat {direction} LIMIT {steps}",
            *values,
        )
        return [MatchPlace(*row) for row in rows]

    def _walk_on(self, walked: FoundPlaces) -> FoundPlaces:
        """Walk further, and then end the page."""
        further = self._walk(MORE_STEPS, walked.end)
        found = [*walked.places, *further.places]
        if len(found) >= self._wanted.most or further.looked_at is None:
            page = self._page_of(found)
            return page._replace(more=page.more or further.more)
        return FoundPlaces(found, True, further.end, FIRST_STEPS + MORE_STEPS)

    def _fill_page(self, walked: list[MatchPlace], steps: int) -> FoundPlaces:
        """A page from a part of an index, of which `steps` rows were wanted. It may not be full."""
        found: list[MatchPlace] = []
        for at in range(0, len(walked), BATCH):
            batch = walked[at : at + BATCH]
            fitting = self._look_at({each.number for each in batch})
            found += [each for each in batch if fitting.get(each.number) == each]
            if len(found) > self._wanted.most:
                break
        if len(walked) < steps or len(found) > self._wanted.most:
            return self._page_of(found)
        if len(found) == self._wanted.most:
            return FoundPlaces(found, True)
        return FoundPlaces(found, True, walked[-1], len(walked))


def filter_matches(
    wanted: MatchSearch, columns: Mapping[str, str], seats: Mapping[str, int]
) -> Iterator[Condition]:
    """The filters that a match `m` passes or not, without its scores."""
    if wanted.states:
        marks = ", ".join("?" * len(wanted.states))
        yield Condition(f"m.state IN ({marks})", tuple(sorted(wanted.states)))
    if wanted.item is not None:
        yield Condition("m.item = ?", (wanted.item,))
    if wanted.violations:
        yield Condition(f"{columns['violations']} > 0")
    if wanted.apart is not None:
        yield Condition(f"{columns['apart']} >= ?", (wanted.apart,))
    if wanted.model:
        # `seats` is compact JSON: a quotation mark inside a name is escaped
        alias = as_json_text(wanted.model)
        keys = [f'"{key}"' for key in seat_keys(wanted.role, seats)] if wanted.role else [""]
        pairs = tuple(f'{key}:"{alias}"' for key in keys)
        yield Condition(f"({' OR '.join(['instr(m.seats, ?)'] * len(pairs))})", pairs)


def filter_scores(wanted: MatchSearch) -> Iterator[Condition]:
    """The filters that a score `s` passes or not."""
    yield Condition(f"s.metric = ? AND {LIVE} AND s.value IS NOT NULL", (wanted.metric,))
    if wanted.low is not None:
        yield Condition("s.value >= ?", (wanted.low,))
    if wanted.high is not None:
        yield Condition("s.value <= ?", (wanted.high,))
    if wanted.role:
        head = f"{wanted.role}."
        yield Condition("(s.seat = ? OR substr(s.seat, 1, ?) = ?)", (wanted.role, len(head), head))


def seat_keys(role: str, seats: Mapping[str, int]) -> list[str]:
    """The keys that the seats of a role may have."""
    return [role, *(f"{role}.{number + 1}" for number in range(seats.get(role, 1)))]


def as_json_text(text: str) -> str:
    """A text as it stands between the quotation marks of a JSON string."""
    return orjson.dumps(text).decode()[1:-1]


def join_conditions(conditions: Iterable[Condition]) -> tuple[str, tuple[Any, ...]]:
    """Several conditions as one, and all their values."""
    found = list(conditions)
    values = tuple(value for each in found for value in each.values)
    return " AND ".join(each.sql for each in found) or "TRUE", values
