"""The rows that a match writes, in the form that SQLite stores, and transactions of many rows."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from parley.errors import StoreError
from parley.match.protocol import Reply, Usage
from parley.match.record import RecordedCall
from parley.memory.experiences import Experience, Recalled
from parley.plans import MatchSpec
from parley.rules.notes import WrittenNote
from parley.rules.pool import Content, ContentPart, Message, Seat, text_of
from parley.rules.referee import Violation
from parley.store.sqlite.digests import seal_run
from parley.store.sqlite.filesystem import is_network
from parley.store.sqlite.schema import DERIVED

CALL = (
    "INSERT INTO calls (match, round, seat, attempt, saw, content, parts, reasoning, finish, "
    "model, tokens_in, tokens_cached, tokens_out, tokens_reasoning, tokens_written, latency, "
    "carry, sent, left_out, at, pinned, digest) VALUES "
)
ROUND = "INSERT OR IGNORE INTO rounds (match, first, messages, digest) VALUES "
MATCH = (
    "INSERT OR IGNORE INTO matches (number, block, item, repeat, seed, seats, idle, stage, arm) "
    "VALUES "
)
RECALLED = "INSERT INTO recalled (match, seat, version, shown) VALUES "
ASKED = "INSERT OR IGNORE INTO people_verdicts (match, seat) VALUES "
VERDICT = (
    "UPDATE people_verdicts SET yes = ?, no = ?, unsure = ? "
    "WHERE match = ? AND seat = ? AND yes IS NULL"
)
BROUGHT = "INSERT INTO brought (number, experience) VALUES "
SCORE = "INSERT INTO scores (match, seat, metric, value) VALUES "
VIOLATION = (
    "INSERT INTO violations (match, number, round, seat, attempt, kind, detail, outcome) VALUES "
)
NOTE = "INSERT INTO notes (match, number, round, facts, kind) VALUES "
PART = "INSERT INTO part_results (name, version, schema, data, figures) VALUES (?, ?, ?, ?, ?)"
COPIED_SCORE = "INSERT INTO scores (match, seat, metric, value, judge) VALUES "
COPIED_VERDICT = "INSERT INTO people_verdicts (match, seat, yes, no, unsure) VALUES "
EFFECT = "INSERT INTO effects (match, round, number, saw, result, digest) VALUES "
CLAIM = (
    "UPDATE matches SET state = 'running', began = COALESCE(began, ?) "
    "WHERE number IN (SELECT value FROM json_each(?)) "
    "AND state NOT IN ('done', 'aborted')"
)
END = (
    "UPDATE matches AS m SET state = json_extract(e.value, '$[1]'), reason = "
    "json_extract(e.value, '$[2]'), rounds = json_extract(e.value, '$[3]'), ended = "
    "json_extract(e.value, '$[4]'), digest = json_extract(e.value, '$[5]'), "
    f"{', '.join(f'{name} = {sql}' for name, sql in DERIVED.items())} FROM json_each(?) AS e "
    "WHERE number = json_extract(e.value, '$[0]') AND state = 'running'"
)
# of one statement. Each statement gives the interpreter away and has to win it back, which costs
# more than it does
ROWS = 64
FIELDS = (
    "round, seat, attempt, saw, content, parts, reasoning, finish, model, tokens_in, "
    "tokens_cached, tokens_out, tokens_reasoning, tokens_written, latency, carry, "
    "sent, left_out, at"
)


class Batch:
    """The rows of the next commit, and the callers that wait for it."""

    __slots__ = ("changes", "claims", "ends", "inserts", "seals", "waiting")

    def __init__(self) -> None:
        self.inserts: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.claims: list[int] = []
        self.ends: list[tuple[Any, ...]] = []  # match, state, reason, rounds, time, digest
        self.changes: list[tuple[str, tuple[Any, ...]]] = []
        self.seals = False  # whether the run stops here and gets a digest
        self.waiting: list[asyncio.Future[None]] = []

    def __bool__(self) -> bool:
        return bool(self.inserts or self.claims or self.ends or self.changes or self.waiting)


def match_row(spec: MatchSpec) -> tuple[Any, ...]:
    """A planned match as a row."""
    seats = encode_json({seat.key: alias for seat, alias in spec.seats.items()})
    idle = encode_json(sorted(seat.key for seat in spec.unscored)) if spec.unscored else None
    row = spec.number, spec.block, spec.item, spec.repeat, spec.seed, seats, idle
    return *row, spec.stage, spec.arm


def call_row(number: int, call: RecordedCall, pinned: int | None = None) -> tuple[Any, ...]:
    """A match's call as a row; `pinned`: 1 if it was copied from another run."""
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
        reply.model,
        usage.tokens_in,
        usage.tokens_cached,
        usage.tokens_out,
        usage.tokens_reasoning,
        usage.tokens_written,
        reply.latency,
        encode_json(reply.provider_state) if reply.provider_state is not None else None,
        reply.sent,
        ",".join(reply.left_out) or None,
        call.at,
        pinned,
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
    told = [
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
    return match, first, orjson.dumps(told)


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
        saw,
        text,
        parts,
        reasoning,
        finish,
        model,
        *usage,
        latency,
        carry,
        sent,
        left_out,
        at,
    ) = row
    content: Content = tuple(ContentPart(**part) for part in orjson.loads(parts)) if parts else text
    carried, missed = (
        orjson.loads(carry) if carry else None,
        tuple(left_out.split(",")) if left_out else (),
    )
    reply = Reply(
        content, reasoning or "", finish, Usage(*usage), model, latency, carried, sent, missed
    )
    return RecordedCall(round, Seat.of(seat), attempt, saw, reply, at)


def parts_of(content: Content) -> str | None:
    """The parts of a message with more than text, as JSON."""
    return None if isinstance(content, str) else encode_json([asdict(part) for part in content])


def encode_json(value: Any) -> str:
    """A value as JSON."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as wrong:
        raise StoreError(f"only plain data can be recorded: {wrong}") from None


def set_durability(connection: sqlite3.Connection, path: Path) -> str:
    """Make commits durable; returns a notice if the file system allows only slow commits."""
    connection.execute("PRAGMA synchronous = FULL")
    if not is_network(path):
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode == "wal":
            return ""
    connection.execute("PRAGMA journal_mode = DELETE")
    return (
        f"{path.parent} is on a file system that does not support SQLite's WAL, so Parley uses "
        "a rollback journal, which is slower"
    )


def write_batch(connection: sqlite3.Connection, batch: Batch, token: str) -> None:
    """Write a batch in one transaction; nothing is written if the run is no longer ours."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT 1 FROM runs WHERE token = ?", (token,)).fetchone() is None:
        raise StoreError("another process has taken over this run, so this process stops")
    if batch.claims:
        connection.execute(CLAIM, (time.time(), encode_json(batch.claims)))
    for statement, rows in batch.inserts.items():
        insert_rows(connection, statement, rows)
    if batch.ends and connection.execute(END, (encode_json(batch.ends),)).rowcount != len(
        batch.ends
    ):
        raise StoreError("this match has already ended")
    for statement, values in batch.changes:
        connection.execute(statement, values)
    if batch.seals:
        seal_run(connection)
    connection.execute("COMMIT")


def insert_rows(
    connection: sqlite3.Connection, statement: str, rows: list[tuple[Any, ...]]
) -> None:
    """Insert rows in as few statements as possible."""
    for at in range(0, len(rows), ROWS):
        chunk = rows[at : at + ROWS]
        connection.execute(
            statement + placeholders(len(chunk[0]), len(chunk)),
            [value for row in chunk for value in row],
        )


@cache
def placeholders(columns: int, rows: int) -> str:
    """The placeholders of several rows in a statement."""
    return ",".join([f"({','.join('?' * columns)})"] * rows)


def release_and_checkpoint(connection: sqlite3.Connection, token: str) -> None:
    """Release the run and merge the WAL into the file, so that it can be copied. A reader may
    prevent the merge without harm."""
    try:
        connection.execute("UPDATE runs SET owner = NULL, token = NULL WHERE token = ?", (token,))
        connection.execute("PRAGMA busy_timeout = 200")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error:
        pass
