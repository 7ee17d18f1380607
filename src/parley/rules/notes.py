"""Notes: facts that a rule writes into the record and an analysis reads back as the same type.

`referee.note(Round(3, cooperated))` writes a declared note, `referee.note(fact=value)` a free one.
Analyses read only declared notes; free notes are for people who read a match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from parley.errors import TaskError
from parley.rules.pool import Seat

PLAIN = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}


class Note:
    """Facts that a rule writes and an analysis reads. Subclass it as a frozen dataclass:

        @dataclass(frozen=True)
        class Round(Note, kind="dilemma.round"):
            number: int
            cooperated: Mapping[Seat, bool]

    `kind` names the note in the record, so no two tasks should use the same one. Fields are plain
    values: text, numbers, None, seats, other dataclasses, and sequences and mappings of these.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, *, kind: str = "") -> None:
        super().__init_subclass__()
        cls.kind = kind or cls.kind
        if not cls.kind:
            raise TaskError(
                f"{cls.__name__}: a note needs a kind: write "
                f'class {cls.__name__}(Note, kind="TASK.NAME")'
            )

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The note recorded as these facts. Raises ValueError, naming the fact that does not
        fit."""
        found: Self = decode(facts, cls, cls.__name__)
        return found


@dataclass(frozen=True)
class Vote:
    """A judge's score for a seat, and the mark behind it if that is a different number."""

    score: float | None
    mark: float | None = None


@dataclass(frozen=True)
class Votes(Note, kind="votes"):
    """The votes of a panel: each judge's votes by seat; None if the judge's reply was
    unreadable.

    Every task that writes this note gets the part `judges`.
    """

    votes: Mapping[Seat, Mapping[Seat, Vote] | None]


@dataclass(frozen=True)
class Ended(Note, kind="ended"):
    """Why a two-player match was lost. Every task that writes this note gets reasons in
    `outcomes`."""

    end: str


@dataclass(frozen=True)
class WrittenNote:
    """A note as it is recorded: its kind (None: free), its round, and plain facts."""

    round: int
    facts: Mapping[str, Any]
    kind: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The note as one mapping, with its round."""
        return {"round": self.round, **self.facts}


def facts_of(note: Note) -> dict[str, Any]:
    if not is_dataclass(note):
        raise TaskError(
            f"{type(note).__name__}: a note must be a dataclass: add @dataclass(frozen=True)"
        )
    return {each.name: as_plain(getattr(note, each.name)) for each in fields(note)}


def as_plain(value: Any) -> Any:
    """Convert dataclasses inside a value to mappings; fields that are None by default are left
    out."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: as_plain(found)
            for each in fields(value)
            if (found := getattr(value, each.name)) is not None or each.default is not None
        }
    if isinstance(value, Mapping):
        return {key: as_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple) and not isinstance(value, Seat):
        return [as_plain(each) for each in value]
    return value


@cache
def field_types(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


Decode = Callable[[Any, str], Any]  # from a plain value and where it stands


def decode(value: Any, kind: Any, where: str) -> Any:
    """Convert a plain value to a type that a note may have. Raises ValueError if it does not
    fit."""
    return make_decoder(kind)(value, where)


@cache
def make_decoder(kind: Any) -> Decode:
    """A function that converts plain values to this type. A run may have millions of notes, so the
    type is looked at once."""
    if kind is Any:
        return lambda value, where: value
    if kind is Seat:
        return decode_seat
    if kind in PLAIN:
        return make_plain_decoder(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return make_union_decoder(inner)
    if origin is Literal:
        return make_literal_decoder(inner)
    if is_dataclass(kind) and isinstance(kind, type):
        return make_dataclass_decoder(kind)
    if origin in (dict, Mapping):
        return make_mapping_decoder(*inner)
    if origin in (list, Sequence) or (origin is tuple and inner[1:] == (...,)):
        return make_sequence_decoder(inner[0], list if origin is list else tuple)

    def refuse(value: Any, where: str) -> Any:
        raise TaskError(
            f"{where}: a note cannot contain {kind}: use text, numbers, None, seats, dataclasses, "
            "sequences or mappings"
        )

    return refuse


def decode_seat(value: Any, where: str) -> Seat:
    if type(value) is not str:
        raise ValueError(f"{where}: expected {PLAIN[str]}, found {value!r:.80}")
    return seat_of(value)


@lru_cache(maxsize=1000)
def seat_of(key: str) -> Seat:
    return Seat.of(key)


def make_plain_decoder(kind: Any) -> Decode:
    also = int if kind is float else kind

    def decode_plain(value: Any, where: str) -> Any:
        found = type(value)
        if found is not kind and found is not also:
            raise ValueError(f"{where}: expected {PLAIN[kind]}, found {value!r:.80}")
        return value

    return decode_plain


def make_union_decoder(kinds: tuple[Any, ...]) -> Decode:
    """Converts a value to the first of several types that fits."""
    may_be_none = NoneType in kinds
    decoders: list[Decode] = []  # made late: a type may contain itself

    def decode_union(value: Any, where: str) -> Any:
        if value is None and may_be_none:
            return None
        if not decoders:
            decoders.extend(map(make_decoder, kinds))
        faults = []
        for decode_value in decoders:
            try:
                return decode_value(value, where)
            except ValueError as wrong:
                faults.append(str(wrong))
        raise ValueError(faults[0])

    return decode_union


def make_literal_decoder(known: tuple[Any, ...]) -> Decode:
    def decode_literal(value: Any, where: str) -> Any:
        if value not in known:
            raise ValueError(
                f"{where}: expected one of {', '.join(map(repr, known))}, found {value!r:.80}"
            )
        return value

    return decode_literal


def make_dataclass_decoder(kind: type) -> Decode:
    types = field_types(kind)
    needed = [
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    ]
    decoders: dict[str, Decode] = {}  # made late: a type may contain itself

    def decode_dataclass(value: Any, where: str) -> Any:
        if not isinstance(value, dict | Mapping):  # dict first: it is faster
            raise ValueError(f"{where}: expected an object ({kind.__name__}), found {value!r:.80}")
        for name in needed:
            if name not in value:
                missing = [name for name in needed if name not in value]
                raise ValueError(f"{where}: missing {', '.join(missing)}")
        if not decoders:
            decoders.update((name, make_decoder(each)) for name, each in types.items())
        return kind(
            **{
                name: decoders[name](each, f"{where}.{name}")
                for name, each in value.items()
                if name in decoders
            }
        )

    return decode_dataclass


def make_mapping_decoder(key_kind: Any, kind: Any) -> Decode:
    decoders: list[Decode] = []  # of keys and of values, made late: a type may contain itself

    def decode_mapping(value: Any, where: str) -> Any:
        if not isinstance(value, dict | Mapping):
            raise ValueError(f"{where}: expected a mapping, found {value!r:.80}")
        if not decoders:
            decoders.extend((make_decoder(key_kind), make_decoder(kind)))
        decode_key, decode_value = decoders
        return {
            decode_key(key, where): decode_value(each, f"{where}.{key}")
            for key, each in value.items()
        }

    return decode_mapping


def make_sequence_decoder(kind: Any, found: type[list[Any]] | type[tuple[Any, ...]]) -> Decode:
    decoders: list[Decode] = []  # of the elements, made late: a type may contain itself

    def decode_sequence(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}: expected a list, found {value!r:.80}")
        if kind in PLAIN and set(map(type, value)) <= {kind}:  # long lists of numbers
            return found(value)
        if not decoders:
            decoders.append(make_decoder(kind))
        (decode_value,) = decoders
        return found(decode_value(each, f"{where}[{n}]") for n, each in enumerate(value))

    return decode_sequence
