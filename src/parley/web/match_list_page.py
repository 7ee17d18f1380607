"""The matches of a run: filters and orders as links and a form, pages by keyset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from parley.errors import UsageError, unknown_name
from parley.money import Total, match_costs, prices_of
from parley.report.model_signs import ModelSigns
from parley.results.match_list import BROKEN, STATE_KINDS, ListedSeat, list_scored_seats
from parley.results.match_notes import Mark
from parley.results.scores import choose_ranking_metric, parse_metric
from parley.rules.task import Metric
from parley.store.match_search import ORDERS, FoundMatch, MatchOrder, MatchPlace, MatchSearch
from parley.store.reader import RunReader
from parley.store.types import MatchRow, RunInfo, RunRef
from parley.tables import format_duration, format_number, shorten
from parley.web.app import run_link, run_of, site_of
from parley.web.known_prices import known_price

ORDER_WORDS: Mapping[MatchOrder, tuple[str, str]] = {  # ascending, descending
    "number": ("first match first", "last match first"),
    "score": ("lowest score first", "highest score first"),
    "seconds": ("shortest first", "longest first"),
    "tokens": ("fewest tokens first", "most tokens first"),
}


@dataclass(frozen=True)
class MatchQuery:
    """The query of an address, as text: what the form sends and links repeat."""

    model: str = ""
    role: str = ""
    item: str = ""
    metric: str = ""
    low: str = ""
    high: str = ""
    violations: str = ""
    aborted: str = ""
    apart: str = ""
    order: str = ""
    down: str = ""
    after: str = ""
    before: str = ""

    @classmethod
    def of(cls, request: Request) -> MatchQuery:
        """The query of a request; refuses names that no filter has, and names given twice."""
        known = [each.name for each in fields(cls)]
        given: dict[str, str] = {}
        for name, value in request.query_params.multi_items():
            if name not in known:
                raise unknown_name("filter", shorten(name), known)
            if name in given:
                raise UsageError(f"the filter {name} must be given once, not twice")
            given[name] = value.strip()
        return cls(**given)

    def link(self, ref: RunRef, **changes: str) -> str:
        """The address of this list with some changes; it begins at its first page."""
        found = replace(self, **{"after": "", "before": "", **changes})
        given = {each.name: value for each in fields(found) if (value := getattr(found, each.name))}
        address = run_link(ref, "matches")
        return f"{address}?{urlencode(given)}" if given else address


@dataclass(frozen=True)
class ListedPlayer:
    """A seat of a match that is scored, as the list shows it."""

    seat: str
    alias: str
    score: str


@dataclass(frozen=True)
class MatchLine:
    """A match, as the list shows it."""

    row: MatchRow
    players: tuple[ListedPlayer, ...]
    others: tuple[tuple[str, str], ...]  # instruments and unscored seats
    violations: int | None
    apart: str
    cost: str
    tokens: int | None
    seconds: str
    state: Mark
    item_link: str  # the same list, of this item only


def show_matches(request: Request) -> Response:
    """A page of matches."""
    ref, query = run_of(request), MatchQuery.of(request)
    site = site_of(request)
    with site.store.read(ref) as reader:
        info = reader.info
        metrics = {each["name"]: parse_metric(each) for each in info.identity["metrics"]}
        wanted = parse_search(query, info, metrics)
        found = reader.matches.search(wanted)
        lines = make_match_lines(reader, found.matches, metrics, wanted.metric, query)
    up, down = ORDER_WORDS[wanted.order]
    return site.page(
        "matches.html",
        signs=ModelSigns.of(info.config.contestants),
        ref=ref,
        info=info,
        query=query,
        wanted=wanted,
        lines=lines,
        columns=list_columns(lines),
        metric=metrics.get(wanted.metric),
        metrics=list(metrics),
        roles=list(info.identity["roles"]),
        judged=any(metric.judged for metric in metrics.values()),
        chips=list_filters(query, wanted, ref),
        orders=list_orders(query, wanted, ref),
        order_words=down if wanted.descending else up,
        turned=query.link(ref, down="" if wanted.descending else "1"),
        looked_at=found.looked_at,
        first=query.link(ref) if query.after or query.before else "",
        previous=found.previous and query.link(ref, before=write_place(found.previous)),
        next=found.next and query.link(ref, after=write_place(found.next)),
    )


def parse_search(query: MatchQuery, info: RunInfo, metrics: Mapping[str, Metric]) -> MatchSearch:
    """The search that an address asks for. Raises `UsageError`, which names what was wanted."""
    roles = info.identity["roles"]
    for what, name, known in (
        ("model", query.model, info.config.models),
        ("role", query.role, roles),
        ("metric", query.metric, metrics),
        ("order", query.order, ORDERS),
    ):
        if name and name not in known:
            raise unknown_name(what, shorten(name), known)
    low, high = (number_filter(query, name) for name in ("low", "high"))
    if low is not None and high is not None and low > high:
        raise UsageError(f"low must not be above high, but {low:g} is above {high:g}")
    order: MatchOrder = query.order or "number"  # type: ignore[assignment]
    metric = query.metric
    if not metric and (order == "score" or low is not None or high is not None):
        scored = query.role or next(name for name, kind in roles.items() if kind == "contestant")
        every = list(metrics.values())
        metric = (choose_ranking_metric(every, scored) or every[0]).name
    if query.role and not (query.model or metric):
        raise UsageError(
            f"the role {query.role} filters nothing by itself: also choose a model or a metric"
        )
    if query.after and query.before:
        raise UsageError("a page begins after a match or ends before one: give after or before")
    return MatchSearch(
        model=query.model,
        role=query.role,
        item=query.item or None,
        metric=metric,
        low=low,
        high=high,
        violations=switch_filter(query, "violations"),
        states=frozenset(BROKEN if switch_filter(query, "aborted") else ()),
        apart=number_filter(query, "apart"),
        order=order,
        descending=switch_filter(query, "down"),
        after=read_place(query.after, "after"),
        before=read_place(query.before, "before"),
    )


def number_filter(query: MatchQuery, name: str) -> float | None:
    text = getattr(query, name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{name} must be a number such as 0.5, not {shorten(text)!r}")
    return value


def switch_filter(query: MatchQuery, name: str) -> bool:
    text = getattr(query, name)
    if text not in ("", "1"):
        raise UsageError(f"{name} must be 1 or left out, not {shorten(text)!r}")
    return bool(text)


def write_place(place: MatchPlace) -> str:
    """A place in a list, for an address."""
    return "~".join([repr(place.key), str(place.number), place.seat]).rstrip("~")


def read_place(text: str, name: str) -> MatchPlace | None:
    """The place that `write_place` wrote."""
    if not text:
        return None
    key, _, rest = text.partition("~")
    number, _, seat = rest.partition("~")
    try:
        place = MatchPlace(float(key), int(number), seat)
        if not math.isfinite(place.key) or abs(place.number) >= 2**62:
            raise ValueError
    except ValueError:
        raise UsageError(
            f"{name} must be a place that a link of this list contains, not {shorten(text)!r}"
        ) from None
    return place


def make_match_lines(
    reader: RunReader,
    found: tuple[FoundMatch, ...],
    metrics: Mapping[str, Metric],
    metric: str,
    query: MatchQuery,
) -> list[MatchLine]:
    """The matches of a page with their scores and costs."""
    roles = reader.info.identity["roles"]
    numbers = [each.row.number for each in found]
    costs = match_costs(reader, numbers, prices_of(reader, known_price))
    scores = reader.scores.of_matches(numbers)
    every, lines = list(metrics.values()), []
    ref = reader.info.ref
    items = {item: query.link(ref, item=item) for item in {each.row.item for each in found} if item}
    for each in found:
        row, given = each.row, scores[each.row.number]
        scored = list_scored_seats(row, roles, every, given)
        players = tuple(
            ListedPlayer(
                str(seat.seat),
                seat.alias,
                format_score(seat, given.get(seat.seat, {}), metrics.get(metric)),
            )
            for seat in scored
        )
        played = {each.seat for each in scored}
        others = tuple(
            (str(seat), alias) for seat, alias in row.seats.items() if seat not in played
        )
        over = row.ended is not None and row.began is not None
        lines.append(
            MatchLine(
                row,
                players,
                others,
                each.violations,
                "" if each.apart is None else format_number(each.apart, 1),
                describe_cost(costs[row.number]),
                each.tokens,
                format_duration((row.ended or 0) - (row.began or 0)) if over else "",
                Mark(row.state, STATE_KINDS.get(row.state, "")),
                items.get(row.item or "", ""),
            )
        )
    return lines


def list_columns(lines: Sequence[MatchLine]) -> list[str]:
    """The columns that have a value in some line of the page."""
    values = {
        "item": any(each.row.item is not None or each.row.arm for each in lines),
        "violations": any(each.violations is not None for each in lines),
        "apart": any(each.apart for each in lines),
        "tokens": any(each.tokens is not None for each in lines),
        "cost": any(each.cost for each in lines),
        "seconds": any(each.seconds for each in lines),
    }
    return [name for name, is_known in values.items() if is_known]


def format_score(
    seat: ListedSeat, scores: Mapping[str, float | None], metric: Metric | None
) -> str:
    """The score of a seat by the metric of the list, else by the one that its role is ranked by."""
    if metric is None:
        return seat.score_text if seat.metric else ""
    return format_number(scores[metric.name], metric.digits) if metric.name in scores else ""


def describe_cost(cost: Total) -> str:
    """The cost of a match in USD; empty if its calls cost nothing."""
    return "" if cost.usd == 0 else str(cost)


def list_filters(query: MatchQuery, wanted: MatchSearch, ref: RunRef) -> list[tuple[str, str]]:
    """The filters in words, each with the address of the list without it."""
    within = [f"at least {query.low}"] * bool(query.low) + [f"at most {query.high}"] * bool(
        query.high
    )
    without_score = {"metric": "", "low": "", "high": ""}
    if wanted.order == "score":
        without_score |= {"order": "", "down": ""}
    score = " ".join([wanted.metric, " and ".join(within)]).strip()
    words: dict[str, tuple[str, dict[str, str]]] = {
        "model": (query.model, {"model": ""}),
        "role": (f"as {query.role}" if query.role else "", {"role": ""}),
        "item": (f"item {query.item}" if query.item else "", {"item": ""}),
        "metric": (score, without_score),
        "violations": ("with violations" if wanted.violations else "", {"violations": ""}),
        "aborted": ("aborted or failed" if wanted.states else "", {"aborted": ""}),
        "apart": (f"judges apart by {query.apart} or more" if query.apart else "", {"apart": ""}),
    }
    return [(said, query.link(ref, **without)) for said, without in words.values() if said]


def list_orders(query: MatchQuery, wanted: MatchSearch, ref: RunRef) -> list[dict[str, Any]]:
    """Every order with its address, both ways for the current one."""
    found = []
    for order in ORDERS:
        down = "1" if order not in ("number", "score") else ""
        found.append(
            {
                "name": order,
                "link": query.link(ref, order=order, down=down),
                "current": order == wanted.order,
            }
        )
    return found


ROUTES = [Route("/run/{id}/matches", show_matches)]
