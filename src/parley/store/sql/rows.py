"""The rows that a run writes, in the form that stores keep, and those of one commit as a group."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import orjson

from parley.errors import StoreError
from parley.masking.spans import Span
from parley.match.protocol import DeviceSetup, Reply, Usage
from parley.match.record import RecordedCall
from parley.memory.experiences import Experience, Recalled
from parley.plans import MatchSpec
from parley.rules.notes import WrittenNote
from parley.rules.pool import Content, ContentPart, Message, Seat, text_of
from parley.rules.referee import Violation
from parley.store import HistoryKind

FIELDS = (  # of a call, as a reader gives it
    "round, seat, attempt, view_digest, content, parts, reasoning, finish, model_served, "
    "response_id, request_id, system_fingerprint, tokens_in, tokens_cached, tokens_out, "
    "tokens_reasoning, tokens_written, latency, provider_state, sent, left_out, masked, at"
)
# The columns that stores write, by table.
COLUMNS = {
    "history": "number, at, kind, facts, digest",
    "items": "id, number, data",
    "matches": "number, block, item, repeat, seed, seats, unscored, stage, arm",
    "calls": f"match, {FIELDS}, copied, device, device_seconds, digest",
    "devices": "number, setup",
    "effects": "match, round, number, request_digest, result, digest",
    "rounds": "match, first, messages, digest",
    "scores": "match, seat, metric, value, judge",
    "violations": "match, number, round, seat, attempt, kind, detail, outcome",
    "notes": "match, number, round, facts, kind",
    "recalled": "match, seat, version, shown",
    "people_verdicts": "match, seat, yes, no, unsure",
    "transferred": "number, experience",
    "batches": "number, uid, alias, state, provider_id, requests, began",
    "batch_requests": "batch, number, match, round, seat, attempt, body, usd",
    "part_results": "name, version, schema, data, figures",
}
ONCE = ("matches", "rounds", "people_verdicts")  # rows that are known are left as they are


class CommitGroup:
    """The rows that are committed together, and the callers that wait for this."""

    __slots__ = ("changes", "ends", "entries", "inserts", "leases", "parts", "seals", "waiting")

    def __init__(self) -> None:
        self.inserts: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)  # by table
        self.leases: list[int] = []
        self.ends: list[tuple[Any, ...]] = []  # match, state, reason, rounds, time, digest
        # statements, in which {run} is the condition that a row belongs to the run
        self.changes: list[tuple[str, tuple[Any, ...]]] = []
        self.entries: list[tuple[HistoryKind, dict[str, Any]]] = []  # of the history of the run
        self.parts: list[tuple[Any, ...]] | None = None  # results of analyses, which replace all
        self.seals = False  # whether the run stops here and is sealed
        self.waiting: list[asyncio.Future[None]] = []

    def __bool__(self) -> bool:
        return bool(self.inserts or self.leases or self.ends or self.changes or self.waiting)


def match_row(spec: MatchSpec) -> tuple[Any, ...]:
    """A planned match as a row."""
    seats = encode_json({seat.key: alias for seat, alias in spec.seats.items()})
    unscored = encode_json(sorted(seat.key for seat in spec.unscored)) if spec.unscored else None
    row = spec.number, spec.block, spec.item, spec.repeat, spec.seed, seats, unscored
    return *row, spec.stage, spec.arm


def call_row(
    number: int,
    call: RecordedCall,
    copied: int | None = None,
    device: tuple[int, float] | None = None,
) -> tuple[Any, ...]:
    """A match's call as a row, without its digest. `copied`: 1 if it comes from another run;
    `device`: the number of the device that worked for it, and the seconds."""
    reply, usage = call.reply, call.reply.usage
    return (
        number,
        call.round,
        call.seat.key,
        call.attempt,
        call.view_digest,
        text_of(reply.content),
        parts_of(reply.content),
        reply.reasoning or None,
        reply.finish,
        reply.model_served,
        reply.response_id,
        reply.request_id,
        reply.system_fingerprint,
        usage.tokens_in,
        usage.tokens_cached,
        usage.tokens_out,
        usage.tokens_reasoning,
        usage.tokens_written,
        reply.latency,
        encode_json(reply.provider_state) if reply.provider_state is not None else None,
        reply.sent,
        ",".join(reply.left_out) or None,
        encode_json([list(span) for span in call.masked]) if call.masked else None,
        call.at,
        copied,
        *(device or (None, None)),
    )


def violation_row(match: int, number: int, violation: Violation) -> tuple[Any, ...]:
    """A violation as a row."""
    return match, number, *{**asdict(violation), "seat": violation.seat.key}.values()


def note_row(match: int, number: int, note: WrittenNote) -> tuple[Any, ...]:
    """A note as a row."""
    return (match, number, note.round, encode_json(note.facts), note.kind)


def round_row(match: int, first: int, messages: Iterable[Message]) -> tuple[int, int, bytes]:
    """The messages of a closed round as one row, numbered from `first` on; the text of a reply is
    stored with its call."""
    rows = [
        (
            round,
            kind,
            sender.key if sender else None,
            [seat.key for seat in audience],
            content,
            attempt,
        )
        for round, kind, sender, audience, content, attempt in messages
    ]
    return match, first, orjson.dumps(rows)


def recalled_row(recalled: Recalled) -> tuple[Any, ...]:
    """The experiences that a seat is shown, as a row."""
    facts = {
        "shown": [list(each) for each in recalled.shown],
        "k": recalled.k,
        "dropped": recalled.dropped,
        "shuffle": recalled.shuffle,
    }
    return recalled.match, recalled.seat, recalled.version, encode_json(facts)


def experience_row(number: int, experience: Experience) -> tuple[int, str]:
    """An experience of another run, as a row."""
    turns = [[turn.question, turn.answer, turn.hint] for turn in experience.turns]
    return number, encode_json({**asdict(experience), "turns": turns})


def call_from(row: Sequence[Any]) -> RecordedCall:
    """The call in a row."""
    (
        round,
        seat,
        attempt,
        view_digest,
        text,
        parts,
        reasoning,
        finish,
        model_served,
        response_id,
        request_id,
        system_fingerprint,
        *usage,
        latency,
        provider_state,
        sent,
        left_out,
        masked,
        at,
    ) = row
    content: Content = tuple(ContentPart(**part) for part in orjson.loads(parts)) if parts else text
    reply = Reply(
        content,
        reasoning or "",
        finish,
        Usage(*usage),
        model_served,
        response_id,
        request_id,
        system_fingerprint,
        latency,
        orjson.loads(provider_state) if provider_state else None,
        sent,
        tuple(left_out.split(",")) if left_out else (),
    )
    spans: tuple[Span, ...] = ()
    if masked:
        length = len(text_of(content))
        spans = tuple(span_from(each, length) for each in orjson.loads(masked))
    return RecordedCall(round, Seat.of(seat), attempt, view_digest, reply, at, spans)


def span_from(facts: Any, length: int) -> Span:
    """A name in a reply of this length, as recorded."""
    start, end, family, roles = facts
    placed = type(start) is type(end) is int and 0 <= start < end <= length
    if not (placed and isinstance(family, str) and isinstance(roles, list)):
        raise ValueError(f"{facts!r} is no place of a name")
    return Span(start, end, family, tuple(map(str, roles)))


def setup_from(facts: Mapping[str, Any]) -> DeviceSetup:
    """How a model is run on a device, as recorded; unknown facts are ignored."""
    return DeviceSetup(**{each.name: facts[each.name] for each in fields(DeviceSetup)})


def parts_of(content: Content) -> str | None:
    """The parts of a message with more than text, as JSON."""
    return None if isinstance(content, str) else encode_json([asdict(part) for part in content])


def encode_json(value: Any) -> str:
    """A value as JSON."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as wrong:
        raise StoreError(f"only plain data can be recorded: {wrong}") from None
