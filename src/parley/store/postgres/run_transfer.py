"""Moves a run between a PostgreSQL store and a run file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg.errors import Error, OperationalError, UniqueViolation

from parley.errors import StoreError
from parley.store.copied_run import INTERRUPT
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import (
    connect,
    explain_unwritable,
    first_line,
    with_marks,
)
from parley.store.postgres.database_history import write_seal
from parley.store.postgres.database_reader import PostgresReader
from parley.store.postgres.database_tables import LOCK, create_store_tables
from parley.store.postgres.database_votes import VOTING, VoteStatements
from parley.store.postgres.database_writer import for_row_of, storable_rows
from parley.store.refusals import refuse_imported
from parley.store.sqlite.new_file import new_file
from parley.store.sqlite.run_copy import read_id, read_to_import, report_rows, write_run_file
from parley.store.sqlite.run_file import SqliteReader
from parley.store.tables import RUN_TABLES, RUNS, list_names
from parley.store.verdict_votes import add_vote_rows

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

CHUNK = 1000  # rows that are prepared together
RUN_COLUMNS = list_names(RUNS.moved)
INSERT_RUN = (
    f"INSERT INTO runs ({RUN_COLUMNS}, changed) VALUES ({'?, ' * (RUN_COLUMNS.count(',') + 1)}?) "
    "RETURNING run"
)


def export_from_database(
    reader: PostgresReader, path: Path, replace: bool, tell: Callable[[str], None]
) -> None:
    """Write a run, as one snapshot shows it, into a new file."""
    with new_file(path, replace) as unfinished:
        write_run_file(reader, reader.snapshot.vote_rows(), unfinished, tell)


def import_into_database(address: StoreAddress, source: Path, tell: Callable[[str], None]) -> str:
    """Add the run in a file to the database, in one transaction; returns its id."""
    id = read_id(source)
    connection = connect(address)
    try:
        create_store_tables(connection, address)
        with failed_import_explained(address):
            known = connection.execute("SELECT 1 FROM runs WHERE id = %s", (id,)).fetchone()
        if known:
            refuse_imported(id, address.public)
        with read_to_import(source, tell) as reader, failed_import_explained(address):
            try:
                with connection.transaction():
                    insert_moved_run(connection, reader, tell)
            except UniqueViolation as wrong:
                if wrong.diag.table_name != "runs":
                    raise
                refuse_imported(id, address.public)  # another process was faster
    finally:
        connection.close()
    return id


def insert_moved_run(
    connection: Connection, reader: SqliteReader, tell: Callable[[str], None]
) -> None:
    """Insert all rows of a run, and the votes on it."""
    stored = storable_rows(reader.snapshot.moved_rows("runs"))
    found = connection.execute(
        with_marks(INSERT_RUN).encode(), (*stored.rows[0], time.time())
    ).fetchone()
    assert found is not None
    (run,) = found
    escapes = stored.escapes
    for table in RUN_TABLES.values():
        if table is RUNS:
            continue
        rows = iter(report_rows(reader.snapshot.moved_rows(table.name), table.name, tell))
        copying = f"COPY {table.name} (run, {list_names(table.moved)}) FROM STDIN"
        with (
            connection.cursor() as cursor,
            cursor.copy(copying.encode()) as copy,
        ):
            while (stored := storable_rows(islice(rows, CHUNK))).rows:
                escapes = escapes or stored.escapes
                for row in stored.rows:
                    copy.write_row((run, *row))
    connection.execute("UPDATE runs SET escapes = %s WHERE run = %s", (escapes, run))
    if reader.info.state == "running":
        for statement, values in INTERRUPT:
            connection.execute(for_row_of(statement, run).encode(), values)
        write_seal(connection, run)
    if votes := reader.snapshot.carried_votes():
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK, -VOTING))
        add_vote_rows(VoteStatements(connection), reader.info.id, votes)


@contextmanager
def failed_import_explained(address: StoreAddress) -> Iterator[None]:
    """Turn errors of the driver into errors for the user."""
    try:
        yield
    except Error as wrong:
        why = (
            f"{address.hide_secrets(first_line(wrong))}; nothing was imported: import the run "
            "again when the database can be written"
            if isinstance(wrong, OperationalError)
            else explain_unwritable(address, wrong)
        )
        raise StoreError(f"{address.public} cannot be written: {why}") from None
