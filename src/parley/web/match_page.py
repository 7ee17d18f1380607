"""One match: the conversation by round, one seat's view of it, or two matches side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import orjson
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from parley.errors import UsageError, unknown_name
from parley.money import match_costs, prices_of
from parley.report.fenced_code import ends_in_code
from parley.report.looks import Looks
from parley.report.sections import NEGATIVE, clean_data
from parley.results.demonstrations import read_demonstrations
from parley.results.match_list import ListedSeat
from parley.results.match_notes import describe_note, name_seats
from parley.results.run_facts import group_attempts
from parley.results.scores import parse_metric
from parley.results.transcript import (
    MatchTurn,
    Transcript,
    describe_shown,
    find_seat,
    read_transcript,
    rebuild_views,
)
from parley.rules.parsing import is_deeper_than
from parley.rules.pool import Seat, as_message
from parley.rules.task import Metric
from parley.store import MatchRow, NoteRow, RunInfo, RunReader, RunRef
from parley.store.match_search import MatchSearch
from parley.tables import format_duration, format_number, plural, shorten
from parley.web.app import run_link, run_of, site_of
from parley.web.known_prices import known_price
from parley.web.live_run import list_scored
from parley.web.match_list_page import STATE_CHIPS, describe_cost

SHOWN = 3_000  # characters of a text that are shown at once
ROOM = 600_000  # characters of folded texts on a page; more are on the page of their round
ROOM_OF_ROUND = 20_000_000  # on the page of one round
SAME_ITEM = 12  # other matches on the item
MOST_FIELDS, LONGEST_FIELD, MOST_LEVELS = 60, 2_000, 20  # of a judge's reply
FILTERS = ("seat", "beside", "round")


@dataclass(frozen=True)
class BoundedText:
    """A text that may be too long to show at once."""

    head: str
    rest: str = ""  # shown when it is unfolded
    left_out: int = 0  # characters that are on the page of the round only
    cuts_code: bool = False  # the rest begins inside a fenced block


@dataclass
class PageRoom:
    """How much text a page still has room for. Texts are cleaned before they are cut: half of a
    secret would not be recognised."""

    left: int
    clean: Callable[[str], str]

    def bound(self, text: str) -> BoundedText:
        """A text in two parts; the second is left out if the page has no room for it."""
        text = self.clean(text)
        head, rest = text[:SHOWN], text[SHOWN:]
        if len(rest) > self.left:
            return BoundedText(head, left_out=len(rest))
        self.left -= len(rest)
        return BoundedText(head, rest, cuts_code=bool(rest) and ends_in_code(head))


@dataclass(frozen=True)
class Mark:
    """Something that happened to a reply, or that a note says of it."""

    text: str
    kind: str = ""  # good, warn or bad


@dataclass(frozen=True)
class TurnCard:
    """A message as the page shows it."""

    name: str  # the seat, or the referee with its audience
    alias: str
    sign: Markup
    colour: str
    text: BoundedText
    is_reply: bool = False
    is_judge: bool = False
    is_refused: bool = False  # the seat was asked again
    marks: tuple[Mark, ...] = ()
    masked: tuple[str, ...] = ()  # words that nobody else read
    reasoning: BoundedText | None = None
    fields: tuple[tuple[str, str], ...] = ()  # of a judge's reply


@dataclass(frozen=True)
class NoteCard:
    """A note of the rule as the page shows it."""

    text: str
    kind: str = ""  # good or bad, if it is a verdict


@dataclass(frozen=True)
class SeatScores:
    """The scores of a seat as the page shows them."""

    seat: str
    alias: str
    sign: Markup
    unscored: bool
    values: tuple[tuple[str, str], ...]  # metric and score


@dataclass(frozen=True)
class RoundSection:
    """A round as the page shows it."""

    number: int
    title: str
    cards: tuple[TurnCard | NoteCard, ...]


@dataclass(frozen=True)
class MatchPanel:
    """One match with all that the page shows of it."""

    row: MatchRow
    title: str
    lead: str
    marks: tuple[Mark, ...]
    facts: tuple[str, ...]
    rounds: tuple[RoundSection, ...]
    scores: tuple[SeatScores, ...]
    by_round: Markup
    votes: tuple[str, ...]
    recalled: tuple[str, ...]
    leaves_out: bool


def show_match(request: Request) -> Response:
    """The page of a match."""
    ref, site = run_of(request), site_of(request)
    given = read_choices(request)
    with site.store.read(ref) as reader:
        row = find_match(reader, request.path_params["number"])
        seat = find_seat(row, given["seat"]) if given.get("seat") else None
        other = find_beside(reader, row, given["beside"]) if given.get("beside") else None
        only = parse_round(given["round"]) if given.get("round") else None
        room = PageRoom(ROOM if only is None else ROOM_OF_ROUND, site.clean)
        facts: dict[str, Any] = {
            "ref": ref,
            "info": reader.info,
            "row": row,
            "seat": seat,
            "only": only,
            "panel": make_panel(reader, row, room, only),
            "beside": other and make_panel(reader, other, room, only),
            "view": () if seat is None else make_view(reader, row, seat, room),
            "views": [(each, seat_link(ref, row, each)) for each in row.seats],
            "state_chips": STATE_CHIPS,
            "same": list_same_item(reader, row, ref),
            "previous": reader.match(row.number - 1),
            "next": reader.match(row.number + 1),
            "match_link": match_link,
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
    row = reader.match(number)
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


def make_panel(reader: RunReader, row: MatchRow, room: PageRoom, only: int | None) -> MatchPanel:
    """A match with its rounds, or with one of them."""
    found = read_transcript(reader, row)
    info, number = reader.info, row.number
    looks = Looks.of(info.config.contestants)
    leading = list_scored(reader, row, metrics_of(info))
    rounds = [each for each in found.rounds if only in (None, each.number)]
    if only is not None and not rounds:
        last = max((each.number for each in found.rounds), default=0)
        raise UsageError(f"match {number} has no round {only}; it has rounds 0 to {last}")
    cost = match_costs(reader, [number], prices_of(reader, known_price))[number]
    calls = plural(cost.calls, "call")
    over = row.ended is not None and row.began is not None
    facts = [
        f"{calls}, {spent} USD" if (spent := describe_cost(cost)) else calls,
        format_duration((row.ended or 0) - (row.began or 0)) if over else "",
    ]
    return MatchPanel(
        row,
        title_of_match(row, leading),
        describe_ending(row, leading),
        tuple(summarise(found)),
        tuple(filter(None, facts)),
        tuple(
            RoundSection(
                each.number,
                f"Round {each.number}" if each.number else "Before the first round",
                (
                    *(make_card(turn, found, info, looks, room) for turn in each.turns),
                    *(make_note(note, found, room.clean) for note in each.notes),
                    *(make_card(turn, found, info, looks, room) for turn in each.told),
                ),
            )
            for each in rounds
        ),
        tuple(list_scores(found, looks)),
        draw_rounds(found, looks),
        tuple(describe_people(found)),
        tuple(describe_recalled(reader, found)),
        found.leaves_out,
    )


def list_scores(found: Transcript, looks: Looks) -> Iterator[SeatScores]:
    """The scores of each seat, the best seat of each role first."""
    for seat, scores in found.scores.items():
        alias = found.match.seats[seat]
        values = [
            (
                f"{each.name} ({each.unit})" if each.unit else each.name,
                NEGATIVE.sub("−", format_number(scores[each.name], each.digits)),
            )
            for each in found.metrics
            if each.name in scores
        ]
        unscored = seat in found.match.unscored
        yield SeatScores(str(seat), alias, Markup(looks.sign(alias)), unscored, tuple(values))


def metrics_of(info: RunInfo) -> list[Metric]:
    return [parse_metric(each) for each in info.identity["metrics"]]


def title_of_match(row: MatchRow, leading: Sequence[ListedSeat]) -> str:
    one_metric = len({each.metric.name for each in leading if each.metric}) == 1
    names = [f"{each.alias} {each.score_text}" if one_metric else each.alias for each in leading]
    if not names:
        return f"Match {row.number}"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"Match {row.number}: {', '.join(names[:3])}{more}"


def describe_ending(row: MatchRow, leading: Sequence[ListedSeat]) -> str:
    """What happened, in a sentence or two."""
    told = []
    scored = [each for each in leading if each.score is not None and each.metric is not None]
    metrics = {each.metric.name: each.metric for each in scored if each.metric}
    if len(metrics) == 1 and len(scored) > 1:
        (metric,) = metrics.values()
        best = sorted(scored, key=lambda each: each.share or 0.0, reverse=True)
        if best[0].score == best[-1].score:
            told.append(f"All have the same {metric.name}: {best[0].score_text}.")
        else:
            told.append(
                f"{best[0].alias} ({best[0].seat}) has the best {metric.name}, "
                f"{best[0].score_text}, and {best[-1].alias} ({best[-1].seat}) the worst, "
                f"{best[-1].score_text}."
            )
    else:
        told += [
            f"{each.alias} ({each.seat}): {each.metric.name} {each.score_text}."
            for each in scored[:4]
            if each.metric
        ]
    if row.state in ("aborted", "failed"):
        why = f": {row.reason}" if row.reason else ""
        what = "aborted" if row.state == "aborted" else "not finished"
        told.append(f"The match was {what}{why}.")
    elif row.state != "done":
        told.append(f"The match is {row.state}.")
    elif row.rounds is not None:
        told.append(f"The match ended after {plural(row.rounds, 'round')}.")
    return " ".join(told)


def summarise(found: Transcript) -> Iterator[Mark]:
    """What happened to replies, counted."""
    outcomes: dict[str, int] = {}
    for tries in group_attempts(found.violations):
        last = tries[-1]
        name = "masked" if last.outcome == "masked" else last.kind
        outcomes[name] = outcomes.get(name, 0) + 1
    again = sum(each.outcome == "asked again" for each in found.violations)
    if again:
        yield Mark(f"{plural(again, 'reply', 'replies')} asked for again", "warn")
    for name, count in outcomes.items():
        if name == "masked":
            yield Mark(f"{plural(count, 'name')} masked")
        else:
            yield Mark(f"{plural(count, 'violation')}: {name}", "warn")


def make_card(
    turn: MatchTurn, found: Transcript, info: RunInfo, looks: Looks, room: PageRoom
) -> TurnCard:
    """A message with the marks on it."""
    if turn.seat is None:
        everybody = len(turn.audience) == len(found.match.seats) > 1
        to = "all" if everybody else ", ".join(map(str, turn.audience))
        asked = (Mark("asks again", "warn"),) if turn.kind == "again" else ()
        text = room.bound(turn.unread)
        return TurnCard(f"Referee to {to}", "", Markup(""), "grey", text, marks=asked)
    alias = found.match.seats[turn.seat]
    is_judge = info.identity["roles"][turn.seat.role] != "contestant"
    thought = turn.call.reply.reasoning if turn.call else ""
    return TurnCard(
        str(turn.seat),
        alias,
        Markup(looks.sign(alias)),
        looks.colour(alias),
        room.bound(turn.text),
        is_reply=True,
        is_judge=is_judge,
        is_refused=any(each.outcome == "asked again" for each in turn.violations),
        marks=tuple(mark_reply(turn, room.clean)),
        masked=tuple(each.detail for each in turn.violations if each.outcome == "masked"),
        reasoning=room.bound(thought) if thought else None,
        fields=tuple(list_fields(turn.text, found.match, room.clean)) if is_judge else (),
    )


def mark_reply(turn: MatchTurn, clean: Callable[[str], str]) -> Iterator[Mark]:
    """What happened to a reply: masked, repaired, cut, refused."""
    if turn.attempt:
        yield Mark(f"attempt {turn.attempt + 1}")
    for each in turn.violations:
        detail = clean(each.detail)
        if each.outcome == "masked":
            yield Mark(f"said its own name, masked for others: {shorten(detail)}")
        else:
            yield Mark(f"{each.kind}: {shorten(detail, 300)}; {each.outcome}", "warn")
    finish = turn.call.reply.finish if turn.call else "stop"
    if finish == "length" and not any(each.kind == "cut" for each in turn.violations):
        yield Mark("cut at the token limit", "warn")
    if not turn.text.strip():
        yield Mark("empty", "warn")


def list_fields(
    text: str, match: MatchRow, clean: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """The fields of a judge's reply: marks with their grounds. Nothing if it is no JSON object, or
    one with too many levels: then the page shows its text."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return
    if not isinstance(value, dict) or is_deeper_than(value, MOST_LEVELS):
        return
    for count, (path, words) in enumerate(flatten_fields(name_seats(value, match.seats))):
        if count == MOST_FIELDS:
            return
        yield path, shorten(clean(words), LONGEST_FIELD)


def flatten_fields(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """The plain values in a nested object, each with its path in words."""
    for name, each in value.items():
        path = f"{before} · {name}" if before else str(name)
        if isinstance(each, dict) and each:
            yield from flatten_fields(each, path)
        else:
            yield path, each if isinstance(each, str) else orjson.dumps(each).decode()


def make_note(note: NoteRow, found: Transcript, clean: Callable[[str], str]) -> NoteCard:
    """A note of the rule; a verdict on an answer or a program is marked."""
    verdict = note.facts.get("passed", note.facts.get("right"))
    kind = {True: "good", False: "bad"}[verdict] if isinstance(verdict, bool) else ""
    cleaned = replace(note, facts=clean_data(dict(note.facts), clean))
    return NoteCard(describe_note(cleaned, found.match, found.item), kind)


def draw_rounds(found: Transcript, looks: Looks) -> Markup:
    """Scores after each round as a small drawing, if the task has such metrics."""
    metrics = sorted(
        (each for each in found.metrics if each.round), key=lambda each: each.round or 0
    )
    if len(metrics) < 2:
        return Markup("")
    drawn = []
    for seat, scores in found.scores.items():
        points = [
            (each, scores[each.name]) for each in metrics if scores.get(each.name) is not None
        ]
        if len(points) > 1:
            drawn.append(draw_line(points, looks, found.match.seats[seat]))
            told = ", ".join(
                f"round {each.round}: {format_number(value, each.digits)}" for each, value in points
            )
            drawn.append(Markup('<p class="sub">{}: {}</p>').format(str(seat), told))
    return Markup("").join(drawn)


def draw_line(points: Sequence[tuple[Metric, float | None]], looks: Looks, alias: str) -> Markup:
    """One seat's scores by round. Horizontal places are percentages, so it fits every width."""
    low, high = points[0][0].low, points[0][0].high
    values = [value or 0.0 for _, value in points]
    if not high > low or high - low > 1e9:
        low, high = min(values), max(values)
    spots = []
    for at, value in enumerate(values):
        share = (value - low) / (high - low) if high > low else 0.5
        spots.append((100 * (at + 0.5) / len(values), 72 - 64 * min(1.0, max(0.0, share))))
    path = "L".join(f"{x:.1f} {y * 100 / 80:.1f}" for x, y in spots)
    dots = "".join(
        f'<svg x="{x:.1f}%" y="{y:.1f}" overflow="visible">'
        f'<g class="dot">{looks.shape(alias)}</g></svg>'
        for x, y in spots
    )
    labels = "".join(
        f'<text x="{x:.1f}%" y="95" text-anchor="middle">{metric.round}</text>'
        for (x, _), (metric, _) in zip(spots, points, strict=True)
    )
    return Markup(
        f'<svg class="{looks.colour(alias)} byround" width="100%" height="100" aria-hidden="true">'
        '<svg width="100%" height="80" viewBox="0 0 100 100" preserveAspectRatio="none">'
        f'<path class="ln" d="M{path}"/></svg>{dots}{labels}</svg>'
    )


def describe_people(found: Transcript) -> Iterator[str]:
    """What people said of the match."""
    words = {True: "a success", False: "a failure", None: "undecided"}
    for said in found.people:
        name = f"{said.seat} ({found.match.seats[said.seat]})"
        if said.is_open:
            yield f"{name}: people have not voted yet"
        else:
            counts = f"{said.yes} yes, {said.no} no, {said.unsure} cannot tell"
            yield f"{name}: {words[said.success]} ({counts})"


def describe_recalled(reader: RunReader, found: Transcript) -> Iterator[str]:
    """The experiences from earlier matches that seats were shown."""
    for row in found.recalled:
        for shown in row.shown:
            source = reader.match(shown.match) if shown.match > 0 else None
            yield f"{Seat.of(row.seat)}: {describe_shown(shown, source)}"


def make_view(reader: RunReader, row: MatchRow, seat: Seat, room: PageRoom) -> tuple[TurnCard, ...]:
    """Everything that one seat read and wrote, in order and unshortened."""
    looks = Looks.of(reader.info.config.contestants)
    alias = row.seats[seat]
    cards = []
    for recalled in reader.read_recalled(row.number):
        if recalled.seat == seat.key:
            cards += [
                TurnCard(describe_shown(shown, source), "", Markup(""), "grey", room.bound(words))
                for shown, source, words in read_demonstrations(reader, recalled)
            ]
    views, _ = rebuild_views(reader.messages(row.number), reader.calls(row.number), row.seats)
    for turn in map(as_message, views[seat.key].turns):
        text = room.bound(turn["content"])
        if turn["role"] == "user":
            cards.append(TurnCard("Referee", "", Markup(""), "grey", text))
        else:
            sign, colour = Markup(looks.sign(alias)), looks.colour(alias)
            cards.append(TurnCard(str(seat), alias, sign, colour, text, is_reply=True))
    return tuple(cards)


def list_same_item(
    reader: RunReader, row: MatchRow, ref: RunRef
) -> list[tuple[MatchRow, str, str]]:
    """Other matches on the item: each with its scores and the address that shows both."""
    if row.item is None:
        return []
    found, metrics = [], metrics_of(reader.info)
    for each in reader.find_matches(MatchSearch(item=row.item, most=SAME_ITEM + 1)).matches:
        other = each.row
        if other.number == row.number:
            continue
        scored = list_scored(reader, other, metrics)
        told = ", ".join(f"{seat.alias} {seat.score_text}" for seat in scored)
        link = f"{match_link(ref, row)}?{urlencode({'beside': other.number})}"
        found.append((other, told, link))
    return found[:SAME_ITEM]


ROUTES = [Route("/run/{id}/match/{number}", show_match)]
