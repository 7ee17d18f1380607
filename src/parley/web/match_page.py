"""One match: the conversation by round, one seat's view of it, or two matches side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from parley.errors import UsageError, unknown_name
from parley.providers._secrets import make_secret_filter
from parley.report.model_signs import ModelSigns
from parley.report.text_room import TextRoom
from parley.results.match_list import rank_scored_seats
from parley.results.scores import parse_metric
from parley.results.seat_views import find_seat
from parley.results.transcript import (
    READ_BEFORE,
    Transcript,
    TranscriptReader,
)
from parley.rules.pool import Seat
from parley.store.match_search import MatchSearch
from parley.store.reader import RunReader
from parley.store.types import MatchRow, RunRef
from parley.tables import plural, shorten
from parley.web.app import run_link, run_of, site_of
from parley.web.known_prices import known_price

ROOM = 600_000  # characters of folded texts on a page; more are on the page of their round
ROOM_OF_ROUND = 20_000_000  # on the page of one round
SAME_ITEM = 12  # other matches on the item
FILTERS = ("seat", "beside", "round")


def show_match(request: Request) -> Response:
    """The page of a match."""
    ref, site = run_of(request), site_of(request)
    given = read_choices(request)
    with site.store.read(ref) as reader:
        row = find_match(reader, request.path_params["number"])
        seat = find_seat(row, given["seat"]) if given.get("seat") else None
        other = find_beside(reader, row, given["beside"]) if given.get("beside") else None
        only = parse_round(given["round"]) if given.get("round") else None
        matches = TranscriptReader(reader, make_secret_filter(), known_price)

        def read(match: MatchRow) -> Transcript:
            return choose_round(matches.read(match), only)

        facts: dict[str, Any] = {
            "ref": ref,
            "info": reader.info,
            "row": row,
            "seat": seat,
            "only": only,
            "found": read(row),
            "beside": other and read(other),
            "view": () if seat is None else matches.read_seat(row, seat),
            "views": [(each, seat_link(ref, row, each)) for each in row.seats],
            "same": list_same_item(reader, row, ref),
            "previous": reader.matches.find(row.number - 1),
            "next": reader.matches.find(row.number + 1),
            "match_link": match_link,
            "read_before": READ_BEFORE,
            "room": TextRoom(ROOM if only is None else ROOM_OF_ROUND),
            "signs": ModelSigns.of(reader.info.config.contestants),
        }
    return site.page("match.html", **facts)


def match_link(ref: RunRef, row: MatchRow) -> str:
    """The address of a match."""
    return run_link(ref, "match", row.number)


def seat_link(ref: RunRef, row: MatchRow, seat: Seat) -> str:
    """The address of one seat's view."""
    return f"{match_link(ref, row)}?{urlencode({'seat': seat.key})}"


def read_choices(request: Request) -> dict[str, str]:
    """What the address chooses: a seat, a second match or a round."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in FILTERS:
            raise unknown_name("choice", shorten(name), FILTERS)
        if name in given:
            raise UsageError(f"{name} must be given once, not twice")
        given[name] = value.strip()
    if given.get("seat") and (given.get("beside") or given.get("round")):
        raise UsageError(
            "a seat's view is shown whole and alone: give seat without beside and round"
        )
    return given


def find_match(reader: RunReader, text: str) -> MatchRow:
    """The match that an address names."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
    row = reader.matches.find(number)
    if row is None:
        planned = plural(reader.info.planned, "match", "matches")
        raise HTTPException(404, f"This run has no match {shorten(text)!r}; it has {planned}.")
    return row


def find_beside(reader: RunReader, row: MatchRow, text: str) -> MatchRow:
    """The second match."""
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise UsageError(f"beside must be the number of a match, not {shorten(text)!r}")
    if int(text) == row.number:
        raise UsageError(f"beside must be another match than {row.number}")
    return find_match(reader, text)


def parse_round(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"round must be the number of a round, not {shorten(text)!r}")
    return int(text)


def choose_round(found: Transcript, only: int | None) -> Transcript:
    """A match with one of its rounds only; None: with all of them."""
    if only is None:
        return found
    rounds = tuple(each for each in found.rounds if each.number == only)
    if not rounds:
        last = max((each.number for each in found.rounds), default=0)
        raise UsageError(
            f"match {found.match.number} has no round {only}; it has rounds 0 to {last}"
        )
    return replace(found, rounds=rounds)


def list_same_item(
    reader: RunReader, row: MatchRow, ref: RunRef
) -> list[tuple[MatchRow, str, str]]:
    """Other matches on the item: each with its scores and the address that shows both."""
    if row.item is None:
        return []
    metrics = [parse_metric(each) for each in reader.info.identity["metrics"]]
    listed = reader.matches.search(MatchSearch(item=row.item, most=SAME_ITEM + 1)).matches
    others = [each.row for each in listed if each.row.number != row.number][:SAME_ITEM]
    scores = reader.scores.of_matches([other.number for other in others])
    roles, found = reader.info.identity["roles"], []
    for other in others:
        scored = rank_scored_seats(other, roles, metrics, scores[other.number])
        told = ", ".join(f"{seat.alias} {seat.score_text}" for seat in scored)
        link = f"{match_link(ref, row)}?{urlencode({'beside': other.number})}"
        found.append((other, told, link))
    return found


ROUTES = [Route("/run/{id}/match/{number}", show_match)]
