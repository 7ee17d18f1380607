"""Creates the file of a new run, completely or not at all."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

import orjson

from parley.errors import StoreError
from parley.store.digests import digest_origin
from parley.store.first_rows import first_rows
from parley.store.history import make_first_entry
from parley.store.refusals import refuse_second
from parley.store.sqlite.new_file import sync_to_disk
from parley.store.sqlite.run_writer import insert_entry, insert_rows
from parley.store.sqlite.schema import create_run_tables
from parley.store.types import NewRun


def create_file(path: Path, run: NewRun) -> None:
    """Write the file, including data that is copied from another run."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            refuse_second(str(path))
        # if the process is killed meanwhile, no incomplete run is left: the file is made durable
        # as a whole, and gets its name then
        unfinished = path.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        connection = sqlite3.connect(unfinished, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            create_run_tables(connection)
            connection.execute("BEGIN")
            connection.execute(
                "INSERT INTO runs (id, created, config, identity, quotation_secret, state) "
                "VALUES (?, ?, ?, ?, ?, 'running')",
                (
                    run.id,
                    time.time(),
                    run.config.encoded().decode(),
                    orjson.dumps(run.identity).decode(),
                    run.quotation_secret,
                ),
            )
            origin = digest_origin(connection)
            for table, rows in first_rows(run, origin):
                insert_rows(connection, table, rows)
            connection.execute(
                "UPDATE runs SET origin = ?, planned = (SELECT COUNT(*) FROM matches)", (origin,)
            )
            insert_entry(connection, make_first_entry(connection))
            connection.execute("COMMIT")
        finally:
            connection.close()
        sync_to_disk(unfinished)
        unfinished.rename(path)
        sync_to_disk(path.parent)
    except (OSError, sqlite3.Error) as wrong:
        with suppress(OSError):
            path.with_suffix(".new").unlink()
        raise StoreError(f"{path} cannot be written: {wrong}") from None
