"""A call as the row that stores keep, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

import orjson

from parley.masking.spans import Span
from parley.match.protocol import Reply, Usage
from parley.match.record import RecordedCall
from parley.rules.pool import Content, ContentPart, Seat, text_of
from parley.store.rows import encode_json
from parley.store.tables import CALLS, list_names

COLUMNS = tuple(column for column in CALLS.columns if column.of)  # of the call itself
FIELDS = list_names(COLUMNS)
PARTS = [column.name for column in COLUMNS].index("parts")
values_of = attrgetter(*(column.of for column in COLUMNS))


def call_row(
    number: int,
    call: RecordedCall,
    copied: int | None = None,
    device: tuple[int, float] | None = None,
) -> tuple[Any, ...]:
    """A match's call as a row, without its digest. `copied`: 1 if it comes from another run;
    `device`: the number of the device that worked for it, and the seconds."""
    values = list(values_of(call))
    for at, encode in ENCODERS:
        values[at] = encode(values[at])
    return number, *values, copied, *(device or (None, None))


def call_from(row: Sequence[Any]) -> RecordedCall:
    """The call in a row."""
    values = list(row)
    for at, decode in DECODERS:
        values[at] = decode(values[at])
    reply = {name: values[at] for name, at in OF_REPLY.items()}
    if parts := values[PARTS]:
        reply["content"] = parts
    usage = Usage(**{name: values[at] for name, at in OF_USAGE.items()})
    call = {name: values[at] for name, at in OF_CALL.items()}
    length = len(text_of(reply["content"]))
    call["masked"] = tuple(span_from(each, length) for each in call["masked"])
    return RecordedCall(**call, reply=Reply(**reply, usage=usage))


def span_from(facts: Any, length: int) -> Span:
    """A name in a reply of this length, as recorded."""
    start, end, family, roles = facts
    placed = type(start) is type(end) is int and 0 <= start < end <= length
    if not (placed and isinstance(family, str) and isinstance(roles, list)):
        raise ValueError(f"{facts!r} is no place of a name")
    return Span(start, end, family, tuple(map(str, roles)))


def encode_parts(content: Content) -> str | None:
    """The parts of a message with more than text, as JSON."""
    return None if isinstance(content, str) else encode_json([asdict(part) for part in content])


def encode_if_given(value: Any) -> str | None:
    """A value as JSON; None stays None."""
    return None if value is None else encode_json(value)


def encode_spans(spans: Sequence[Span]) -> str | None:
    """The names in a reply, as JSON."""
    return encode_json([list(span) for span in spans]) if spans else None


def places_in(part: str) -> dict[str, int]:
    """The columns of one part of a call, by their names there."""
    found: dict[str, int] = {}
    for at, column in enumerate(COLUMNS):
        owner, _, name = column.of.rpartition(".")
        if owner == part:
            found.setdefault(name, at)  # a content has two columns: its text, and its parts
    return found


def place_converters(
    converters: dict[str, Callable[[Any], Any]],
) -> list[tuple[int, Callable[[Any], Any]]]:
    """Which columns are converted, by their places."""
    places = {column.name: at for at, column in enumerate(COLUMNS)}
    return [(places[name], converter) for name, converter in converters.items()]


OF_CALL, OF_REPLY, OF_USAGE = places_in(""), places_in("reply"), places_in("reply.usage")
# How a column is written and read, if not as the value itself. `call_from` reads the two that need
# a third column: parts and the places of names.
ENCODERS = place_converters(
    {
        "seat": lambda seat: seat.key,
        "content": text_of,
        "parts": encode_parts,
        "reasoning": lambda text: text or None,
        "provider_state": encode_if_given,
        "left_out": lambda names: ",".join(names) or None,
        "masked": encode_spans,
    }
)
DECODERS = place_converters(
    {
        "seat": Seat.of,
        "parts": lambda text: text and tuple(ContentPart(**part) for part in orjson.loads(text)),
        "reasoning": lambda text: text or "",
        "provider_state": lambda text: orjson.loads(text) if text else None,
        "left_out": lambda text: tuple(text.split(",")) if text else (),
        "masked": lambda text: orjson.loads(text) if text else (),
    }
)
