"""The file of a new run: whole, or not there."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from parley.errors import StoreError
from parley.store.sqlite.rows import insert
from parley.store.sqlite.schema import migrate

Inserts = tuple[str, list[tuple[Any, ...]]]  # a statement, and the rows for it


def begin(
    path: Path,
    run: str,
    config: bytes,
    identity: bytes,
    items: Sequence[tuple[str, bytes]],
    taken: Iterable[Inserts] = (),
) -> None:
    """Write the file, with what the run takes over from another."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            raise StoreError(f"{path} exists already")
        # a run that is killed while it is made leaves no half of one
        unfinished = path.with_suffix(".new")
        connection = sqlite3.connect(unfinished, isolation_level=None)
        try:
            migrate(connection, 0)
            connection.execute("BEGIN")
            connection.executemany(
                "INSERT INTO items VALUES (?, ?, ?)",
                [(id, n, data.decode()) for n, (id, data) in enumerate(items)],
            )
            connection.execute(
                "INSERT INTO runs (id, created, config, identity, state) "
                "VALUES (?, ?, ?, ?, 'running')",
                (run, time.time(), config.decode(), identity.decode()),
            )
            for statement, rows in taken:
                insert(connection, statement, rows)
            connection.execute("COMMIT")
        finally:
            connection.close()
        unfinished.rename(path)
    except (OSError, sqlite3.Error) as wrong:
        with suppress(OSError):
            path.with_suffix(".new").unlink()
        raise StoreError(f"{path} cannot be written: {wrong}") from None
