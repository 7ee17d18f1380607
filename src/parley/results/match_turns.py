"""What was said in a match, turn by turn, with what happened to each reply in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from parley.match.protocol import Reply
from parley.match.record import RecordedCall
from parley.money import Prices, format_usd
from parley.results.match_notes import Mark, name_seats
from parley.rules.parsing import is_deeper_than
from parley.rules.pool import Seat, text_of
from parley.store.types import MatchRow, ViolationRow, WholeMatch
from parley.tables import format_duration, plural, shorten

Mask = Callable[[str], str]  # hides secrets in a text

LEFT_OUT = "[…]"
PASSAGE = 80  # characters; a repeated paragraph of at least this length is left out
LONGEST_FAULT = 300  # characters of what was wrong with a reply
MOST_FIELDS, LONGEST_FIELD, MOST_LEVELS = 60, 2_000, 20  # of a judge's reply


@dataclass(frozen=True)
class MatchTurn:
    """One message of a match: a reply of a seat, or a text of the referee."""

    round: int
    kind: str  # tell, ask, again or reply
    speaker: str  # the seat, or the referee with its audience
    text: str
    unread: str  # the text without long paragraphs that its whole audience has read before
    seat: Seat | None = None  # None: the referee
    alias: str = ""  # the model in the seat
    marks: tuple[Mark, ...] = ()  # what kind of message it is
    faults: tuple[Mark, ...] = ()  # what was wrong with a reply, and the outcome
    masked: tuple[str, ...] = ()  # names in a reply that other seats did not read
    reasoning: str = ""
    fields: tuple[tuple[str, str], ...] = ()  # of a judge's reply: votes with their grounds
    usage: str = ""  # tokens, time and cost of the call, as far as they are on record
    is_judge: bool = False
    is_refused: bool = False  # the seat was asked again


def list_turns(
    whole: WholeMatch, roles: Mapping[str, str], prices: Prices, mask: Mask
) -> Iterator[MatchTurn]:
    """The messages of a match in order; `roles`: by name, contestant or instrument."""
    faults: dict[tuple[int, Seat, int], list[ViolationRow]] = {}
    for each in whole.violations:
        faults.setdefault((each.round, each.seat, each.attempt), []).append(each)
    calls = {(call.round, call.seat, call.attempt): call for call in whole.calls}
    match, paragraphs = whole.match, ReadParagraphs()
    for message in whole.messages:
        round, text = message["round"], mask(message["content"] or "")
        if message["kind"] == "reply":
            place = round, Seat.of(message["sender"]), message["attempt"]
            is_judge = roles[place[1].role] != "contestant"
            own = faults.get(place, ())
            yield make_reply(match, place, text, own, calls.get(place), prices, is_judge, mask)
        else:
            audience = tuple(Seat.of(key) for key in message["audience"])
            unread = paragraphs.leave_out(text, audience)
            marks = (Mark("asks again", "warn"),) if message["kind"] == "again" else ()
            speaker = f"Referee to {describe_audience(audience, match)}"
            yield MatchTurn(round, message["kind"], speaker, text, unread, marks=marks)


def make_reply(
    match: MatchRow,
    place: tuple[int, Seat, int],
    text: str,
    violations: Sequence[ViolationRow],
    call: RecordedCall | None,
    prices: Prices,
    is_judge: bool,
    mask: Mask,
) -> MatchTurn:
    """A reply with what happened to it; `place` is its round, seat and attempt."""
    round, seat, attempt = place
    alias = match.seats[seat]
    reply = Reply("") if call is None else call.reply
    said = text_of(reply.content)
    names = (
        () if call is None else dict.fromkeys(said[each.start : each.end] for each in call.masked)
    )
    return MatchTurn(
        round,
        "reply",
        str(seat),
        text,
        text,
        seat,
        alias,
        marks=tuple(mark_reply(text, attempt, reply.finish, violations)),
        faults=tuple(describe_fault(each, mask) for each in violations),
        masked=tuple(map(mask, names)),
        reasoning=mask(reply.reasoning),
        fields=tuple(list_fields(text, match)) if is_judge else (),
        usage=describe_usage(reply, alias, prices),
        is_judge=is_judge,
        is_refused=any(each.outcome == "asked again" for each in violations),
    )


def describe_audience(audience: Sequence[Seat], match: MatchRow) -> str:
    """The seats that the referee spoke to."""
    everybody = len(audience) == len(match.seats) > 1
    return "all" if everybody else ", ".join(map(str, audience))


def mark_reply(
    text: str, attempt: int, finish: str, violations: Iterable[ViolationRow]
) -> Iterator[Mark]:
    """What kind of reply it is: a further attempt, cut, empty."""
    if attempt:
        yield Mark(f"attempt {attempt + 1}")
    if finish == "length" and not any(each.kind == "cut" for each in violations):
        yield Mark("cut at the token limit", "warn")
    if not text.strip():
        yield Mark("empty", "warn")


def describe_fault(fault: ViolationRow, mask: Mask) -> Mark:
    """What was wrong with a reply, and the outcome."""
    detail = shorten(mask(fault.detail), LONGEST_FAULT)
    if fault.outcome == "masked":
        return Mark(f"name masked for other seats: {detail}")
    return Mark(f"{fault.kind}: {detail}; {fault.outcome}", "warn")


def list_fields(text: str, match: MatchRow) -> Iterator[tuple[str, str]]:
    """The fields of a judge's reply: votes with their grounds. Nothing if it is no JSON object, or
    one with too many levels: then its text is all there is to show."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return
    if not isinstance(value, dict) or is_deeper_than(value, MOST_LEVELS):
        return
    for count, (path, words) in enumerate(flatten_fields(name_seats(value, match.seats))):
        if count == MOST_FIELDS:
            return
        yield path, shorten(words, LONGEST_FIELD)


def flatten_fields(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """The plain values in a nested object, each with its path in words."""
    for name, each in value.items():
        path = f"{before} · {name}" if before else str(name)
        if isinstance(each, dict) and each:
            yield from flatten_fields(each, path)
        else:
            yield path, each if isinstance(each, str) else orjson.dumps(each).decode()


def describe_usage(reply: Reply, alias: str, prices: Prices) -> str:
    """Tokens, time and cost of a call, as far as they are on record."""
    usage, words = reply.usage, list[str]()
    if usage.tokens_in is not None:
        words.append(f"{plural(usage.tokens_in, 'token')} in")
    if usage.tokens_out is not None:
        words.append(f"{plural(usage.tokens_out, 'token')} out")
    if reply.latency is not None:
        words.append(format_duration(reply.latency))
    price = prices.of(alias, reply.model_served) if words else None
    if price is not None and not price.free and usage.tokens_in is not None:
        usd = price.usd(
            usage.tokens_in,
            usage.tokens_cached,
            usage.tokens_out,
            written=usage.tokens_written,
        )
        words.append(f"{format_usd(usd)} USD")
    return ", ".join(words)


@dataclass
class ReadParagraphs:
    """Remembers which paragraphs each seat has read."""

    _read: set[tuple[Seat, str]] = field(default_factory=set)

    def leave_out(self, text: str, audience: Iterable[Seat]) -> str:
        """A text without the long paragraphs that its whole audience has read before. A message
        with nothing new stays complete, because the repetition itself may matter."""
        seats, paragraphs = tuple(audience), text.split("\n\n")
        keys = {each: {(seat, each) for seat in seats} for each in paragraphs}
        known = {each for each in paragraphs if len(each) >= PASSAGE and keys[each] <= self._read}
        self._read = self._read.union(*keys.values())
        if known.issuperset(paragraphs):
            return text
        kept: list[str] = []
        for paragraph in paragraphs:
            if paragraph not in known:
                kept.append(paragraph)
            elif kept[-1:] != [LEFT_OUT]:
                kept.append(LEFT_OUT)
        return "\n\n".join(kept).replace(f"\n\n{LEFT_OUT}", f" {LEFT_OUT}")
