"""The rows that a run writes, in the form that stores keep, and those of one commit as a group."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

import orjson

from parley.errors import StoreError
from parley.match.protocol import DeviceSetup
from parley.memory.experiences import Experience, Recalled
from parley.plans import MatchSpec
from parley.rules.notes import WrittenNote
from parley.rules.pool import Message
from parley.rules.referee import Violation
from parley.store.types import HistoryKind


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


def setup_from(facts: Mapping[str, Any]) -> DeviceSetup:
    """How a model is run on a device, as recorded; unknown facts are ignored."""
    return DeviceSetup(**{each.name: facts[each.name] for each in fields(DeviceSetup)})


def encode_json(value: Any) -> str:
    """A value as JSON."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as wrong:
        raise StoreError(f"only plain data can be recorded: {wrong}") from None
