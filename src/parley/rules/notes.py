"""Notes: facts that a rule writes into the record and an analysis reads back as the same type.

`referee.note(Round(3, cooperated))` writes a declared note, `referee.note(fact=value)` a free one.
Analyses read only declared notes; free notes are for people who read a match.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
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
    `legacy_keys` are for notes of runs that were recorded before notes had a kind.
    """

    kind: ClassVar[str] = ""
    legacy_keys: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, *, kind: str = "", legacy_keys: Collection[str] = ()) -> None:
        super().__init_subclass__()
        cls.kind, cls.legacy_keys = kind or cls.kind, frozenset(legacy_keys) or cls.legacy_keys
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
class Votes(Note, kind="votes", legacy_keys={"votes"}):
    """The votes of a panel: each judge's votes by seat; None if the judge's reply was
    unreadable.

    Every task that writes this note gets the part `judges`.
    """

    votes: Mapping[Seat, Mapping[Seat, Vote] | None]


@dataclass(frozen=True)
class Ended(Note, kind="ended", legacy_keys={"chain", "end"}):
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


def decode(value: Any, kind: Any, where: str) -> Any:
    """Convert a plain value to a type that a note may have. Raises ValueError if it does not
    fit."""
    if kind is Any:
        return value
    if kind is Seat:
        return Seat.of(decode(value, str, where))
    if kind is float and type(value) is int:
        return value
    if kind in PLAIN:
        if type(value) is not kind:
            raise ValueError(f"{where}: expected {PLAIN[kind]}, found {value!r:.80}")
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return decode_union(value, inner, where)
    if origin is Literal:
        if value not in inner:
            raise ValueError(
                f"{where}: expected one of {', '.join(map(repr, inner))}, found {value!r:.80}"
            )
        return value
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected an object ({kind.__name__}), found {value!r:.80}")
        missing = [
            each.name
            for each in fields(kind)
            if each.name not in value
            and each.default is MISSING
            and each.default_factory is MISSING
        ]
        if missing:
            raise ValueError(f"{where}: missing {', '.join(missing)}")
        types = field_types(kind)
        known = {name: each for name, each in value.items() if name in types}
        return kind(
            **{name: decode(each, types[name], f"{where}.{name}") for name, each in known.items()}
        )
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected a mapping, found {value!r:.80}")
        return {
            decode(key, inner[0], where): decode(each, inner[1], f"{where}.{key}")
            for key, each in value.items()
        }
    if origin in (list, Sequence) or (origin is tuple and inner[1:] == (...,)):
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}: expected a list, found {value!r:.80}")
        found = [decode(each, inner[0], f"{where}[{n}]") for n, each in enumerate(value)]
        return found if origin is list else tuple(found)
    raise TaskError(
        f"{where}: a note cannot contain {kind}: use text, numbers, None, seats, dataclasses, "
        "sequences or mappings"
    )


def decode_union(value: Any, kinds: tuple[Any, ...], where: str) -> Any:
    """Convert a value to the first of several types that fits."""
    faults = []
    for kind in kinds:
        try:
            return decode(value, kind, where)
        except ValueError as wrong:
            faults.append(str(wrong))
    raise ValueError(faults[0])
