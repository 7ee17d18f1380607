"""Writes a run into PostgreSQL: which process may write it, and one transaction for each group of
rows."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from psycopg.copy import LibpqWriter
from psycopg.errors import DataError, Error, UniqueViolation

from parley import __version__
from parley.errors import StoreError
from parley.store.changes import refuse_changed
from parley.store.dialect import ENDED_MATCHES
from parley.store.digests import digest_origin
from parley.store.first_rows import first_rows
from parley.store.history import REOPEN
from parley.store.journal import Journal, read_open_matches
from parley.store.owner import Owner, is_running, process_id
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import (
    REMEDY,
    RunQueries,
    connect,
    escape,
    explain_unwritable,
    queries_on,
    unwritable_explained,
    with_marks,
)
from parley.store.postgres.database_history import (
    write_change,
    write_entry,
    write_first_entry,
    write_seal,
)
from parley.store.postgres.database_sharing import fold_workers
from parley.store.postgres.database_tables import DERIVED, LOCK, SAME_SUMS, create_store_tables
from parley.store.refusals import (
    ALREADY_ENDED,
    TAKEN_OVER,
    refuse_played,
    refuse_second,
    refuse_shared,
)
from parley.store.rows import CommitGroup
from parley.store.tables import RUN_TABLES
from parley.store.types import NewRun, RunRef, StoredPart

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

WAIT, WAITS = 0.1, 100  # seconds between two attempts to get the lock of a killed process
LEASE_MATCHES = (
    "UPDATE matches SET state = 'running', began = COALESCE(began, %s) "
    f"WHERE run = %s AND number = ANY(%s) AND NOT {ENDED_MATCHES}"
)
END_MATCHES = (
    "UPDATE matches AS m SET state = e.state, reason = e.reason, rounds = e.rounds, "
    "ended = e.ended, digest = e.digest, "
    f"{', '.join(f'{name} = {sql}' for name, sql in DERIVED.items())} "
    "FROM unnest(%s::int[], %s::text[], %s::text[], %s::int[], %s::float8[], %s::text[]) "
    "AS e(number, state, reason, rounds, ended, digest) "
    "WHERE m.run = %s AND m.number = e.number AND m.state = 'running'"
)
# One process after the other changes a run: the row is locked until the end of the transaction.
# So the ids of calls become visible in their order.
FENCE = "UPDATE runs SET changes = changes + 1, changed = %s WHERE run = %s AND token = %s"
MARK_ESCAPED = "UPDATE runs SET escapes = TRUE WHERE run = %s AND NOT escapes"


class PostgresWriter:
    """The connection that writes a run. While it is open, it holds the lock of the run."""

    def __init__(self, address: StoreAddress, connection: Connection, id: str) -> None:
        self.place, self.token = address.location_of(id), os.urandom(8).hex()
        self._address, self._id, self.connection, self.run = address, id, connection, 0

    async def take(self) -> None:
        """Take the run. The server releases it when the connection of its process ends."""
        for attempt in range(WAITS + 1):
            found = self.connection.execute(
                "SELECT run, owner, shared IS NOT NULL AND state = 'running', "
                "pg_try_advisory_lock(%s, run) FROM runs WHERE id = %s",
                (LOCK, self._id),
            ).fetchone()
            if found is None:
                raise StoreError(f"there is no run {self._id} in {self._address.public}")
            self.run, text, is_shared, is_ours = found
            if is_ours:
                break
            if is_shared:
                refuse_shared(self.place, self._id)
            owner = Owner.of(text or "")
            # the server may notice a moment later that a process has ended; without an owner, the
            # run is being taken or released
            is_played = bool(text) and (not owner.is_near or is_running(owner))
            if attempt == WAITS or is_played:
                refuse_played(self.place, owner)
            await asyncio.sleep(WAIT)
        with self.connection.transaction():
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            refuse_changed(queries_on(self.connection, self.run), self.place, SAME_SUMS, REMEDY)
            fold_workers(self.connection, self.run)
            self.connection.execute(
                "UPDATE runs SET owner = %s, token = %s, heartbeat = %s, changed = %s, "
                "changes = changes + 1, heartbeats = heartbeats + 1, shared = NULL WHERE run = %s",
                (process_id(), self.token, now := time.time(), now, self.run),
            )
            self.connection.execute(for_row_of(REOPEN, self.run).encode())
            write_entry(self.connection, self.run, "opened", {})

    def write(self, group: CommitGroup) -> None:
        """Write a group in one transaction; nothing is written if the run is no longer ours."""
        try:
            try:
                self._commit(group, careful=False)
            except (DataError, UniqueViolation):
                self._commit(group, careful=True)
        except UniqueViolation as wrong:
            raise StoreError(f"this is already on record: {wrong.diag.message_detail}") from None
        except Error as wrong:
            raise StoreError(explain_unwritable(self._address, wrong)) from None

    def _commit(self, group: CommitGroup, careful: bool) -> None:
        with self.connection.transaction():
            fence = self.connection.execute(FENCE, (time.time(), self.run, self.token))
            if not fence.rowcount:
                raise StoreError(TAKEN_OVER)
            if group.leases:
                self.connection.execute(LEASE_MATCHES, (time.time(), self.run, group.leases))
            apply_group(self.connection, self.run, group, careful)
            for kind, facts in group.entries:
                write_change(self.connection, self.run, kind, facts)
            if group.seals:
                write_seal(self.connection, self.run)

    def close(self) -> None:
        """Release the run."""
        with suppress(Error):
            self.connection.execute(
                "UPDATE runs SET owner = NULL, token = NULL WHERE run = %s AND token = %s",
                (self.run, self.token),
            )
            # the server ends a connection a moment after it was closed
            self.connection.execute("SELECT pg_advisory_unlock_all()")
        self.connection.close()


async def open_run(address: StoreAddress, ref: RunRef) -> Journal:
    """Take a run exclusively, to play it."""
    connection = connect(address)
    try:
        create_store_tables(connection, address)
        writer = PostgresWriter(address, connection, ref.id)
        with unwritable_explained(address):
            await writer.take()
            with connection.transaction():
                found = read_open_matches(queries_on(connection, writer.run))
            notice = require_durability(connection, address)
    except BaseException:
        connection.close()
        raise
    return await Journal.start(ref, writer, found, notice)


def require_durability(connection: Connection, address: StoreAddress) -> str:
    """Make commits durable; returns a notice if the server does not allow it."""
    (commit,) = connection.execute("SHOW synchronous_commit").fetchone() or ("",)
    if commit == "off":
        connection.execute("SET synchronous_commit = on")
    (fsync,) = connection.execute("SHOW fsync").fetchone() or ("",)
    if fsync != "off":
        return ""
    return (
        f"the server of {address.public} runs with fsync = off: if its machine crashes, replies "
        "can be lost"
    )


def create_run(connection: Connection, place: str, run: NewRun, shared: bool = False) -> None:
    """Write a new run, including data that is copied from another run, completely or not at all.
    `shared`: workers play it."""
    try:
        with connection.transaction():
            insert_run(connection, run, __version__ if shared else None)
    except UniqueViolation:
        refuse_second(place)


def insert_run(connection: Connection, run: NewRun, shared: str | None) -> None:
    """Insert the rows of a new run. `shared`: the version of the workers that play it."""
    now = time.time()
    found = connection.execute(
        "INSERT INTO runs (id, created, changed, config, identity, quotation_secret, state, "
        "shared) VALUES (%s, %s, %s, %s, %s, %s, 'running', %s) RETURNING run",
        (
            run.id,
            now,
            now,
            run.config.encoded().decode(),
            orjson.dumps(run.identity).decode(),
            run.quotation_secret,
            shared,
        ),
    ).fetchone()
    assert found is not None
    number, escapes = found[0], False
    origin = digest_origin(RunQueries(connection, number, escapes))
    for table, rows in first_rows(run, origin):
        escapes |= write_rows(connection, number, table, rows, careful=True)
    connection.execute(
        "UPDATE runs SET origin = %s, escapes = %s, "
        "planned = (SELECT COUNT(*) FROM matches WHERE run = %s) WHERE run = %s",
        (origin, escapes, number, number),
    )
    write_first_entry(connection, number)


def apply_group(connection: Connection, run: int, group: CommitGroup, careful: bool) -> None:
    """Write the rows of a group, the ends of matches and the other changes, in a transaction that
    has begun.

    First try it without `careful`, which is much cheaper. It raises `DataError` if a value cannot
    be stored as it is, and `UniqueViolation` if a row is on record already. Then write the group
    again with `careful`, in a new transaction.
    """
    escapes = False
    for table, rows in group.inserts.items():
        escapes |= write_rows(connection, run, table, rows, careful)
    if group.ends:
        ends = storable_rows(group.ends)
        escapes |= ends.escapes
        columns = [list(column) for column in zip(*ends.rows, strict=True)]
        if connection.execute(END_MATCHES.encode(), (*columns, run)).rowcount != len(ends.rows):
            raise StoreError(ALREADY_ENDED)
    if group.changes:
        changes = storable_rows(values for _, values in group.changes)
        escapes |= changes.escapes
        for (statement, _), values in zip(group.changes, changes.rows, strict=True):
            connection.execute(for_row_of(statement, run).encode(), values)
    if group.parts is not None:
        escapes |= write_parts(connection, run, group.parts)
    if escapes:
        connection.execute(MARK_ESCAPED, (run,))


def write_parts(connection: Connection, run: int, rows: Sequence[Sequence[Any]]) -> bool:
    """Replace the stored results of analyses. Returns whether texts were escaped."""
    connection.execute("DELETE FROM part_results WHERE run = %s", (run,))
    return write_rows(connection, run, "part_results", rows, careful=True)


def replace_parts(connection: Connection, id: str, parts: Sequence[StoredPart]) -> None:
    """Replace the stored results of analyses of a run that nobody plays."""
    found = connection.execute("SELECT run FROM runs WHERE id = %s FOR UPDATE", (id,)).fetchone()
    if found and write_parts(connection, found[0], [astuple(part) for part in parts]):
        connection.execute(MARK_ESCAPED, found)


class StorableRows(NamedTuple):
    """Rows as PostgreSQL takes them."""

    rows: list[list[Any]]
    escapes: bool  # whether a text in them was escaped


def storable_rows(rows: Iterable[Sequence[Any]]) -> StorableRows:
    """Turn rows into the form that PostgreSQL takes."""
    found, escapes = [], False
    for row in rows:
        stored = list(row)
        for n, value in enumerate(row):
            if isinstance(value, str):
                if "\x00" in value or "\x01" in value:
                    stored[n], escapes = escape(value), True
            elif isinstance(value, float):
                if value != value:
                    stored[n] = None  # as SQLite stores it
            elif isinstance(value, bool):
                stored[n] = int(value)
        found.append(stored)
    return StorableRows(found, escapes)


class CheckedWriter(LibpqWriter):
    """Refuses rows that `storable_rows` would change. It searches many rows at once, in the form
    that COPY sends. psycopg refuses the character 0, and the server a truth value as a number."""

    def write(self, data: Any) -> None:
        if b"\x01" in data or b"\tNaN" in data:
            raise DataError("a value cannot be stored as it is")
        super().write(data)


def write_rows(
    connection: Connection,
    run: int,
    table: str,
    rows: Sequence[Sequence[Any]],
    careful: bool,
) -> bool:
    """Write rows into a table of the run. With `careful`, values are turned into those that
    PostgreSQL takes, and rows that are known are left as they are if the table is written `once`.
    Returns whether texts were escaped."""
    if not rows:
        return False
    spec, escapes = RUN_TABLES[table], False
    if careful:
        rows, escapes = storable_rows(rows)
    if careful and spec.once:  # COPY cannot leave known rows as they are
        arrays = ", ".join(f"%s::{column.kind.postgres}[]" for column in spec.written)
        connection.execute(
            f"INSERT INTO {table} (run, {spec.row}) SELECT %s, new.* FROM unnest({arrays}) AS new "
            "ON CONFLICT DO NOTHING".encode(),
            (run, *(list(column) for column in zip(*rows, strict=True))),
        )
        return escapes
    with connection.cursor() as cursor:
        writer = LibpqWriter(cursor) if careful else CheckedWriter(cursor)
        copying = f"COPY {table} (run, {spec.row}) FROM STDIN".encode()
        with cursor.copy(copying, writer=writer) as copy:
            for row in rows:
                copy.write_row((run, *row))
    return escapes


@cache
def for_row_of(statement: str, run: int) -> str:
    """A statement of the journal for one run of the database."""
    return with_marks(statement.format(run=f"run = {run:d}"))
