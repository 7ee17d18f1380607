"""Writes the file of a run: which process may write it, and one transaction for each group of
rows."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from parley.errors import StoreError
from parley.store.changes import refuse_changed
from parley.store.dialect import ENDED_MATCHES
from parley.store.history import REOPEN, SEAL, HistoryRow, is_known, make_entry, make_seal
from parley.store.journal import Journal, read_open_matches
from parley.store.owner import STALE, Owner, is_running, process_id
from parley.store.refusals import ALREADY_ENDED, TAKEN_OVER, refuse_played
from parley.store.rows import CommitGroup, encode_json
from parley.store.sqlite.filesystem import is_network
from parley.store.sqlite.run_file import REMEDY, ref_of
from parley.store.sqlite.schema import DERIVED, SAME_SUMS, refuse_unreadable
from parley.store.tables import RUN_TABLES

WATCH = 1.0  # seconds between two checks of another machine's heartbeats
LEASE_MATCHES = (
    "UPDATE matches SET state = 'running', began = COALESCE(began, ?) "
    "WHERE number IN (SELECT value FROM json_each(?)) "
    f"AND NOT {ENDED_MATCHES}"
)
# The sign before `state` keeps SQLite from comparing each match that ends with all running ones.
END = (
    "UPDATE matches AS m SET state = json_extract(e.value, '$[1]'), reason = "
    "json_extract(e.value, '$[2]'), rounds = json_extract(e.value, '$[3]'), ended = "
    "json_extract(e.value, '$[4]'), digest = json_extract(e.value, '$[5]'), "
    f"{', '.join(f'{name} = {sql}' for name, sql in DERIVED.items())} FROM json_each(?) AS e "
    "WHERE number = json_extract(e.value, '$[0]') AND +state = 'running'"
)
# of one statement. Each statement gives the interpreter away and has to win it back, which costs
# more than it does
ROWS = 64
STATEMENTS = 512  # that are kept


class SqliteWriter:
    """The connection that writes the file of a run."""

    def __init__(self, path: Path) -> None:
        self.path, self.place, self.token = path, str(path), os.urandom(8).hex()
        self.connection = sqlite3.connect(
            path,
            isolation_level=None,
            timeout=10,
            check_same_thread=False,
            cached_statements=STATEMENTS,
        )
        found = os.stat(path)
        self._file = found.st_dev, found.st_ino

    async def take(self, notify: Callable[[str], None]) -> None:
        """Take the run. A process of this machine owns it while the process runs; one of another
        machine while its heartbeats continue."""
        connection, clock = self.connection, asyncio.get_running_loop().time
        seen: tuple[Any, ...] | None = None
        since = 0.0
        while True:
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("SELECT owner, token, heartbeats FROM runs").fetchone()
            owner = Owner.of(found[0] or "")
            if not found[0] or (owner.is_near and not is_running(owner)):
                break
            if seen is None:
                seen, since = found, clock()
            silent = clock() - since
            if found == seen and not owner.is_near and silent >= STALE:
                break
            connection.execute("ROLLBACK")
            if owner.is_near or found != seen:
                refuse_played(self.place, owner)
            if not silent:
                notify(
                    f"{owner} is still registered as playing this run; Parley waits {STALE:.0f} "
                    "seconds for a sign of life, and then takes the run over"
                )
            await asyncio.sleep(WATCH)
        try:
            refuse_changed(connection, self.place, SAME_SUMS, REMEDY)
        except StoreError:
            connection.execute("ROLLBACK")
            raise
        connection.execute(
            "UPDATE runs SET owner = ?, token = ?, heartbeat = ?, heartbeats = heartbeats + 1",
            (process_id(), self.token, time.time()),
        )
        connection.execute(for_file(REOPEN))
        insert_entry(connection, make_entry(connection, "opened", {}))
        connection.execute("COMMIT")

    def write(self, group: CommitGroup) -> None:
        """Write a group in one transaction; nothing is written if the run is no longer ours."""
        if not self._is_there():
            raise StoreError("the file was moved or deleted during the run")
        try:
            write_group(self.connection, group, self.token)
        except BaseException:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Release the run; afterwards everything is in one file."""
        if self._is_there():
            release_and_checkpoint(self.connection, self.token)
        self.connection.close()

    def _is_there(self) -> bool:
        """Whether the path still leads to the file that is being written."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._file


async def open_run_file(path: Path, notify: Callable[[str], None] = lambda said: None) -> Journal:
    """Take the run in a file exclusively, to play it. `notify` gets a message for the user if this
    takes long."""
    try:
        writer = SqliteWriter(path)
        try:
            refuse_unreadable(writer.connection, writer.place)
            await writer.take(notify)
            found = read_open_matches(writer.connection)
            notice = set_durability(writer.connection, path)
        except BaseException:
            writer.connection.close()
            raise
    except (OSError, sqlite3.Error) as wrong:
        raise StoreError(f"{path} cannot be written: {wrong}") from None
    return await Journal.start(ref_of(path), writer, found, notice)


def write_group(connection: sqlite3.Connection, group: CommitGroup, token: str) -> None:
    """Write a group in one transaction; nothing is written if the run is no longer ours."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT 1 FROM runs WHERE token = ?", (token,)).fetchone() is None:
        raise StoreError(TAKEN_OVER)
    if group.leases:
        connection.execute(LEASE_MATCHES, (time.time(), encode_json(group.leases)))
    for table, rows in group.inserts.items():
        insert_rows(connection, table, rows)
    if group.ends and connection.execute(END, (encode_json(group.ends),)).rowcount != len(
        group.ends
    ):
        raise StoreError(ALREADY_ENDED)
    for number, _, reason, *_ in group.ends:
        if reason and "\x00" in reason:  # a text from JSON ends there
            connection.execute("UPDATE matches SET reason = ? WHERE number = ?", (reason, number))
    for statement, values in group.changes:
        connection.execute(for_file(statement), values)
    if group.parts is not None:
        connection.execute("DELETE FROM part_results")
        insert_rows(connection, "part_results", group.parts)
    for kind, facts in group.entries:
        if not is_known(connection, facts):
            insert_entry(connection, make_entry(connection, kind, facts))
    if group.seals:
        seal_run(connection)
    connection.execute("COMMIT")


def insert_entry(connection: sqlite3.Connection, entry: HistoryRow) -> None:
    """Add an entry to the history of the run."""
    insert_rows(connection, "history", [entry])


def seal_run(connection: sqlite3.Connection) -> None:
    """Seal a run whose state has been set, in a transaction."""
    seal = make_seal(connection)
    insert_entry(connection, seal)
    connection.execute(for_file(SEAL), (seal.digest,))


@cache
def for_file(statement: str) -> str:
    """A statement of the journal for a file, which has one run."""
    return statement.format(run="TRUE")


def insert_rows(connection: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows into a table in as few statements as possible. Columns that are NULL in all of
    them are left out: Python's module takes longer to hand over a NULL than a text."""
    for at in range(0, len(rows), ROWS):
        chunk = rows[at : at + ROWS]
        columns = {
            column.name: values
            for column, values in zip(
                RUN_TABLES[table].written, zip(*chunk, strict=True), strict=True
            )
            if values[0] is not None or values.count(None) < len(values)
        }
        connection.execute(
            insert_statement(table, tuple(columns), len(chunk)),
            list(chain.from_iterable(zip(*columns.values(), strict=True))),
        )


@lru_cache(maxsize=STATEMENTS)
def insert_statement(table: str, columns: tuple[str, ...], rows: int) -> str:
    """The statement that inserts several rows. Rows that are known are left as they are if they may
    be written again."""
    verb = "INSERT OR IGNORE" if RUN_TABLES[table].once else "INSERT"
    marks = placeholders(len(columns), rows)
    return f"{verb} INTO {table} ({', '.join(columns)}) VALUES {marks}"


def placeholders(columns: int, rows: int) -> str:
    """The placeholders of several rows in a statement."""
    return ",".join([f"({','.join('?' * columns)})"] * rows)


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
