"""The journal: a reply is durable before anybody uses it. One writer thread, one commit for all that waits."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

import orjson

from parley.errors import StoreError
from parley.match import Call, Outcome, Record
from parley.plan import MatchSpec
from parley.pool import Content, Message, Seat, text_of
from parley.store.filesystem import is_network
from parley.store.schema import migrate, version_of

CALL = (
    "INSERT INTO calls (match, round, seat, attempt, saw, content, parts, reasoning, finish, model, tokens_in, tokens_cached, "
    "tokens_out, tokens_reasoning, latency, carry, sent, at) VALUES "
)
MESSAGE = "INSERT OR IGNORE INTO messages (match, number, round, kind, sender, audience, content, parts, attempt) VALUES "
ROWS = (64, 16, 4, 1)  # rows a statement: fewer statements, fewer waits for the interpreter
STALE = 60.0  # seconds without a heartbeat after which another machine's claim has lapsed


class Journal(Protocol):
    """What a run needs of its store, wherever that is kept."""

    async def plan(self, specs: Sequence[MatchSpec]) -> None:
        """Make matches known; those already known stay as they are."""

    def claim(self, number: int) -> Record:
        """Take a match to play it; what is already on record for it comes along."""

    async def heartbeat(self) -> None:
        """Say that this process still plays; raises if another has taken over."""

    async def finish(self, number: int, outcome: Outcome) -> None:
        """End a match, once."""

    async def fail(self, number: int, reason: str) -> None:
        """Leave a match unfinished, saying why."""

    async def end(self, state: str, status: str, reason: str) -> None:
        """Say how the run stands."""

    async def close(self) -> None: ...


class Batch:
    """What the next commit will hold, and who waits for it."""

    __slots__ = ("calls", "messages", "others", "waiting")

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.messages: list[tuple[Any, ...]] = []
        self.others: list[tuple[str, tuple[Any, ...], bool]] = []  # statement, values, must change a row
        self.waiting: list[asyncio.Future[None]] = []


class SqliteJournal:
    """A run in one SQLite file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.token, self.notice, self.commits = path, os.urandom(8).hex(), "", 0
        self._loop = asyncio.get_running_loop()
        self._batch, self._idle = Batch(), asyncio.Event()
        self._idle.set()
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, args=(connection,), name="journal", daemon=True)
        self._kept: dict[int, dict[tuple[int, str, int], Call]] = {}
        self._effects: dict[int, dict[tuple[int, int], tuple[bytes, Any]]] = {}

    @classmethod
    async def create(
        cls, path: Path, run: str, config: bytes, identity: bytes, items: Sequence[tuple[str, bytes]] = ()
    ) -> SqliteJournal:
        """Begin the file of a new run."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                raise StoreError(f"{path} exists already")
            connection = sqlite3.connect(path, isolation_level=None)
            try:
                migrate(connection, 0)
                connection.execute("BEGIN")
                connection.executemany(
                    "INSERT INTO items VALUES (?, ?, ?)", [(id, n, data.decode()) for n, (id, data) in enumerate(items)]
                )
                connection.execute(
                    "INSERT INTO runs (id, created, config, identity, state) VALUES (?, ?, ?, ?, 'running')",
                    (run, time.time(), config.decode(), identity.decode()),
                )
                connection.execute("COMMIT")
            finally:
                connection.close()
        except (OSError, sqlite3.Error) as wrong:
            raise StoreError(f"{path} cannot be written: {wrong}") from None
        return await cls.open(path)

    @classmethod
    async def open(cls, path: Path) -> SqliteJournal:
        """Take a run to play it: nobody else may play it meanwhile."""
        try:
            connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
            try:
                journal = cls(path, connection)
                migrate(connection, version_of(connection, str(path)))
                journal._take(connection)
                journal._load(connection)
                journal.notice = prepare(connection, path)
            except BaseException:
                connection.close()
                raise
        except (OSError, sqlite3.Error) as wrong:
            raise StoreError(f"{path} cannot be written: {wrong}") from None
        journal._thread.start()
        await journal.commit("UPDATE runs SET state = 'running', stop_status = NULL, stop_reason = NULL", ())
        return journal

    def _take(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        owner, beat = connection.execute("SELECT owner, beat FROM runs").fetchone()
        if owner and lives(owner, beat or 0):
            connection.execute("ROLLBACK")
            raise StoreError(f"{self.path} is being played by process {owner}: wait for it or stop it")
        me = f"{socket.gethostname()}:{os.getpid()}:{started(os.getpid())}"
        connection.execute("UPDATE runs SET owner = ?, token = ?, beat = ?", (me, self.token, time.time()))
        connection.execute("COMMIT")

    def _load(self, connection: sqlite3.Connection) -> None:
        """What unfinished matches have on record."""
        open_matches = "SELECT number FROM matches WHERE state NOT IN ('done', 'aborted')"
        for match, *row in connection.execute(f"SELECT match, {FIELDS} FROM calls WHERE match IN ({open_matches})"):
            call = call_from(row)
            self._kept.setdefault(match, {})[call.round, call.seat.key, call.attempt] = call
        for match, round, number, saw, result in connection.execute(f"SELECT * FROM effects WHERE match IN ({open_matches})"):
            self._effects.setdefault(match, {})[round, number] = saw, orjson.loads(result)

    async def plan(self, specs: Sequence[MatchSpec]) -> None:
        statement = "INSERT OR IGNORE INTO matches (number, block, item, repeat, seed, seats) VALUES (?, ?, ?, ?, ?, ?)"
        for spec in specs:
            seats = orjson.dumps({seat.key: alias for seat, alias in spec.seats.items()}).decode()
            row = (spec.number, spec.block, spec.item, spec.repeat, spec.seed, seats)
            self._batch.others.append((statement, row, False))
        await self.commit("UPDATE runs SET planned = MAX(planned, (SELECT COUNT(*) FROM matches))", ())

    def claim(self, number: int) -> Record:
        self._enqueue("UPDATE matches SET state = 'running', began = COALESCE(began, ?) WHERE number = ?", (time.time(), number))
        return MatchRecord(self, number, self._kept.pop(number, {}), self._effects.pop(number, {}))

    async def heartbeat(self) -> None:
        await self.commit("UPDATE runs SET beat = ? WHERE token = ?", (time.time(), self.token), must=True)

    async def finish(self, number: int, outcome: Outcome) -> None:
        others = self._batch.others
        ends = "UPDATE matches SET state = ?, reason = ?, rounds = ?, ended = ? WHERE number = ? AND state = 'running'"
        others.append((ends, (outcome.state, outcome.reason or None, outcome.rounds, time.time(), number), True))
        for seat, scores in outcome.scores.items():
            for metric, value in scores.items():
                statement = "INSERT INTO scores (match, seat, metric, value) VALUES (?, ?, ?, ?)"
                others.append((statement, (number, seat.key, metric, value), False))
        for index, violation in enumerate(outcome.violations):
            facts = {**asdict(violation), "seat": violation.seat.key}
            others.append(("INSERT INTO violations VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (number, index, *facts.values()), False))
        for index, note in enumerate(outcome.notes):
            row = (number, index, note["round"], encoded({name: fact for name, fact in note.items() if name != "round"}))
            others.append(("INSERT INTO notes VALUES (?, ?, ?, ?)", row, False))
        await self.acknowledged()

    async def fail(self, number: int, reason: str) -> None:
        await self.commit("UPDATE matches SET state = 'failed', reason = ? WHERE number = ?", (reason, number))

    async def end(self, state: str, status: str, reason: str) -> None:
        self._enqueue("UPDATE matches SET state = 'stopped' WHERE state = 'running'", ())
        await self.commit("UPDATE runs SET state = ?, stop_status = ?, stop_reason = ?", (state, status, reason or None))

    async def close(self) -> None:
        """Let go of the run; the file is whole by itself afterwards."""
        if self._thread.is_alive():
            self._enqueue("UPDATE runs SET owner = NULL, token = NULL WHERE token = ?", (self.token,))
            await self._idle.wait()
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)

    def acknowledged(self) -> asyncio.Future[None]:
        """Done when everything that was put into the batch so far is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._batch.waiting.append(future)
        self._wake()
        return future

    def add_call(self, number: int, call: Call) -> None:
        reply, usage = call.reply, call.reply.usage
        self._batch.calls.append(
            (
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
        )

    def add_messages(self, number: int, messages: Iterable[Message], first: int) -> None:
        rows = self._batch.messages
        for n, (round, kind, sender, audience, content, attempt) in enumerate(messages, first):
            who = " ".join([seat.key for seat in audience])
            text = None if content is None else text_of(content)
            rows.append(
                (number, n, round, kind, sender.key if sender else None, who, text, content and parts_of(content), attempt)
            )
        self._wake()

    def _enqueue(self, statement: str, values: tuple[Any, ...], must: bool = False) -> None:
        self._batch.others.append((statement, values, must))
        self._wake()

    async def commit(self, statement: str, values: tuple[Any, ...], must: bool = False) -> None:
        self._enqueue(statement, values, must)
        await self.acknowledged()

    def _wake(self) -> None:
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self.commits += 1
        batch, self._batch = self._batch, Batch()
        self._queue.put(batch)

    def _acknowledge(self, batch: Batch, fault: str) -> None:
        for future in batch.waiting:
            if not future.done():
                if fault:
                    future.set_exception(StoreError(fault))
                else:
                    future.set_result(None)
        following = self._batch
        if following.calls or following.messages or following.others or following.waiting:
            self._hand_over()
        else:
            self._idle.set()

    def _write_all(self, connection: sqlite3.Connection) -> None:
        """The writer thread: one transaction a batch."""
        try:
            while (batch := self._queue.get()) is not None:
                fault = ""
                try:
                    write(connection, batch)
                except (sqlite3.Error, StoreError) as wrong:
                    fault = f"{self.path} could not be written: {wrong}"
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                self._loop.call_soon_threadsafe(self._acknowledge, batch, fault)
        finally:
            settle(connection)


class MatchRecord:
    """One match's part of the journal."""

    __slots__ = ("_effects", "_journal", "_kept", "_number")

    def __init__(
        self,
        journal: SqliteJournal,
        number: int,
        kept: dict[tuple[int, str, int], Call],
        effects: dict[tuple[int, int], tuple[bytes, Any]],
    ) -> None:
        self._journal, self._number, self._kept, self._effects = journal, number, kept, effects

    def call(self, round: int, seat: Seat, attempt: int) -> Call | None:
        return self._kept.get((round, seat.key, attempt)) if self._kept else None

    async def append(self, call: Call) -> None:
        self._journal.add_call(self._number, call)
        await self._journal.acknowledged()

    def effect(self, round: int, number: int) -> tuple[bytes, Any] | None:
        return self._effects.get((round, number))

    async def append_effect(self, round: int, number: int, saw: bytes, result: Any) -> None:
        row = (self._number, round, number, saw, encoded(result))
        await self._journal.commit("INSERT INTO effects VALUES (?, ?, ?, ?, ?)", row)

    def circulate(self, messages: list[Message], first: int) -> None:
        self._journal.add_messages(self._number, messages, first)


FIELDS = (
    "round, seat, attempt, saw, content, parts, reasoning, finish, model, tokens_in, tokens_cached, tokens_out, "
    "tokens_reasoning, latency, carry, sent, at"
)


def call_from(row: Sequence[Any]) -> Call:
    """A call as a row keeps it."""
    from parley.pool import Part
    from parley.providers.protocol import Reply, Usage

    round, seat, attempt, saw, text, parts, reasoning, finish, model, *usage, latency, carry, sent, at = row
    content: Content = tuple(Part(**part) for part in orjson.loads(parts)) if parts else text
    reply = Reply(content, reasoning or "", finish, Usage(*usage), model, latency, orjson.loads(carry) if carry else None, sent)
    return Call(round, Seat.of(seat), attempt, saw, reply, at)


def parts_of(content: Content) -> str | None:
    """The parts of a message that is more than text, as JSON."""
    return None if isinstance(content, str) else encoded([asdict(part) for part in content])


def encoded(value: Any) -> str:
    """A value as JSON, seats by their keys."""

    def plain(found: Any) -> Any:
        if isinstance(found, Seat):
            return found.key
        if isinstance(found, dict):
            return {key.key if isinstance(key, Seat) else str(key): plain(inner) for key, inner in found.items()}
        if isinstance(found, list | tuple):
            return [plain(inner) for inner in found]
        return found

    try:
        return orjson.dumps(plain(value)).decode()
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


def started(pid: int) -> str:
    """When a process began, as the kernel counts it: a number that is reused is told apart."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def lives(owner: str, beat: float) -> bool:
    """Whether the process that holds a run still runs; on another machine its heartbeat decides."""
    host, pid, began = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return time.time() - beat < STALE
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return started(int(pid)) == began
