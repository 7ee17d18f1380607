"""Creates the file of a new run, completely or not at all."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

import orjson

from parley.errors import StoreError
from parley.store import CopiedMatch, NewRun
from parley.store.sql.digests import digest_origin, with_digests
from parley.store.sql.rows import call_row, encode_json, experience_row, match_row
from parley.store.sqlite.run_writer import insert_rows
from parley.store.sqlite.schema import migrate


def create_file(path: Path, run: NewRun) -> None:
    """Write the file, including data that is copied from another run."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            raise StoreError(f"{path} already exists: choose another name, or delete that run")
        # if the process is killed meanwhile, no incomplete run is left
        unfinished = path.with_suffix(".new")
        connection = sqlite3.connect(unfinished, isolation_level=None)
        try:
            migrate(connection, 0)
            connection.execute("BEGIN")
            connection.executemany(
                "INSERT INTO items VALUES (?, ?, ?)",
                [(id, n, data.decode()) for n, (id, data) in enumerate(run.items)],
            )
            connection.execute(
                "INSERT INTO runs (id, created, config, identity, state) "
                "VALUES (?, ?, ?, ?, 'running')",
                (
                    run.id,
                    time.time(),
                    run.config.encoded().decode(),
                    orjson.dumps(run.identity).decode(),
                ),
            )
            for match in run.copied:
                copy_match(connection, match)
            insert_rows(
                connection,
                "brought",
                [experience_row(number, each) for number, each in enumerate(run.brought, 1)],
            )
            connection.execute("UPDATE runs SET origin = ?", (digest_origin(connection),))
            connection.execute("COMMIT")
        finally:
            connection.close()
        unfinished.rename(path)
    except (OSError, sqlite3.Error) as wrong:
        with suppress(OSError):
            path.with_suffix(".new").unlink()
        raise StoreError(f"{path} cannot be written: {wrong}") from None


def copy_match(connection: sqlite3.Connection, match: CopiedMatch) -> None:
    """Copy a match of another run, which is rejudged here."""
    number = match.spec.number
    insert_rows(connection, "matches", [match_row(match.spec)])
    calls = [call_row(number, call, pinned=1) for call in match.calls]
    rows = [(*row, None, None, digest) for *row, digest in with_digests(calls)]
    insert_rows(connection, "calls", rows)
    effects = [
        (number, *place, saw, encode_json(result))
        for place, (saw, result) in sorted(match.effects.items())
    ]
    insert_rows(connection, "effects", with_digests(effects))
    scores = [
        (number, seat.key, metric, value, match.judge)
        for seat, by in match.scores.items()
        for metric, value in by.items()
    ]
    insert_rows(connection, "scores", scores)
    said = [(number, each.seat.key, each.yes, each.no, each.unsure) for each in match.people]
    insert_rows(connection, "people_verdicts", said)
