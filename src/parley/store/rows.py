"""Rows: what a match writes down, as SQLite keeps it, and one transaction that holds many of them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from parley.errors import StoreError
from parley.pool import Content, Message, Part, Seat, text_of
from parley.providers.protocol import Reply, Usage
from parley.record import Call
from parley.store.filesystem import is_network

CALL = (
    "INSERT INTO calls (match, round, seat, attempt, saw, content, parts, reasoning, finish, model, tokens_in, tokens_cached, "
    "tokens_out, tokens_reasoning, latency, carry, sent, at) VALUES "
)
MESSAGE = "INSERT OR IGNORE INTO messages (match, number, round, kind, sender, audience, content, parts, attempt) VALUES "
ROWS = (64, 16, 4, 1)  # rows a statement: fewer statements, fewer waits for the interpreter
FIELDS = (
    "round, seat, attempt, saw, content, parts, reasoning, finish, model, tokens_in, tokens_cached, tokens_out, "
    "tokens_reasoning, latency, carry, sent, at"
)


class Batch:
    """What the next commit will hold, and who waits for it."""

    __slots__ = ("calls", "messages", "others", "waiting")

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.messages: list[tuple[Any, ...]] = []
        self.others: list[tuple[str, tuple[Any, ...], bool]] = []  # statement, values, must change a row
        self.waiting: list[asyncio.Future[None]] = []


def call_row(number: int, call: Call) -> tuple[Any, ...]:
    """A match's call as a row."""
    reply, usage = call.reply, call.reply.usage
    return (
        number,
        call.round,
        call.seat.key,
        call.attempt,
        call.saw,
        text_of(reply.content),
        parts_of(reply.content),
        reply.reasoning or None,
        reply.finish,
        reply.model,
        usage.tokens_in,
        usage.tokens_cached,
        usage.tokens_out,
        usage.tokens_reasoning,
        reply.latency,
        encoded(reply.carry) if reply.carry is not None else None,
        reply.sent,
        call.at,
    )


def message_row(match: int, number: int, message: Message) -> tuple[Any, ...]:
    """A match's message as a row; a reply's words stand with its call."""
    round, kind, sender, audience, content, attempt = message
    who = " ".join([seat.key for seat in audience])
    text = None if content is None else text_of(content)
    parts = None if content is None else parts_of(content)
    return match, number, round, kind, sender.key if sender else None, who, text, parts, attempt


def call_from(row: Sequence[Any]) -> Call:
    """A call as a row keeps it."""
    round, seat, attempt, saw, text, parts, reasoning, finish, model, *usage, latency, carry, sent, at = row
    content: Content = tuple(Part(**part) for part in orjson.loads(parts)) if parts else text
    reply = Reply(content, reasoning or "", finish, Usage(*usage), model, latency, orjson.loads(carry) if carry else None, sent)
    return Call(round, Seat.of(seat), attempt, saw, reply, at)


def parts_of(content: Content) -> str | None:
    """The parts of a message that is more than text, as JSON."""
    return None if isinstance(content, str) else encoded([asdict(part) for part in content])


def encoded(value: Any) -> str:
    """A value as JSON."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as wrong:
        raise StoreError(f"only plain data can be kept on record: {wrong}") from None


def prepare(connection: sqlite3.Connection, path: Path) -> str:
    """Durable commits; the notice says where the file system allows only the slower way."""
    connection.execute("PRAGMA synchronous = FULL")
    if not is_network(path):
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode == "wal":
            return ""
    connection.execute("PRAGMA journal_mode = DELETE")
    return f"{path.parent} is on a file system where SQLite's WAL does not work: a rollback journal is used, commits are slower"


def write(connection: sqlite3.Connection, batch: Batch) -> None:
    """One transaction: all of the batch, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    insert(connection, CALL, batch.calls)
    insert(connection, MESSAGE, batch.messages)
    for statement, values, must in batch.others:
        if connection.execute(statement, values).rowcount == 0 and must:
            raise StoreError("another process has taken this run over, or the match has ended before")
    connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, statement: str, rows: list[tuple[Any, ...]]) -> None:
    """Rows in as few statements as their number allows."""
    at = 0
    for size in ROWS:
        while len(rows) - at >= size:
            chunk = rows[at : at + size]
            at += size
            marks = f"({','.join('?' * len(chunk[0]))})"
            connection.execute(statement + ",".join([marks] * size), [value for row in chunk for value in row])


def settle(connection: sqlite3.Connection) -> None:
    """Fold everything into the one file, so that it can be copied; a reader may prevent that, which does no harm."""
    try:
        connection.execute("PRAGMA busy_timeout = 200")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error:
        pass
    connection.close()
