"""The file of people's votes beside the runs: its tables, and how it is opened."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from parley.errors import StoreError
from parley.store.pair_votes import VoteStore
from parley.store.sqlite.run_file import REMEDY, connect_to_read
from parley.store.sqlite.run_writer import set_durability
from parley.store.sqlite.schema import create_table, find_stranger
from parley.store.tables import VOTE_TABLES
from parley.store.verdict_votes import VerdictVoteStore
from parley.store.vote_tables import VoteTables

APPLICATION = 0x50524C56  # "PRLV" in the file's header
PATIENCE = 30.0  # seconds to wait while others write
VERSION = 1  # of the tables
TABLES = (
    ";\n".join(map(create_table, VOTE_TABLES))
    + f""";
    CREATE UNIQUE INDEX studies_once ON studies (runs);
    CREATE UNIQUE INDEX votes_once ON votes (study, pair, annotator) WHERE replaced IS NULL;
    CREATE UNIQUE INDEX verdict_votes_once ON verdict_votes (run, match, seat, folded)
        WHERE replaced IS NULL;
    PRAGMA application_id = {APPLICATION};
    PRAGMA user_version = {VERSION};
"""
)


class VotesFile(VoteTables):
    """A file of votes; with `read_only` nothing in it is changed."""

    remedy = REMEDY

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path, self.location = path, str(path)
        try:
            self._connection = (
                connect_to_read(path)
                if read_only
                else sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)
            )
            try:
                if read_only or has_tables(self._connection):
                    check_is_votes(self._connection, path)
                if not read_only:
                    prepare_file(self._connection, path)
            except BaseException:
                self._connection.close()
                raise
        except (OSError, sqlite3.Error) as wrong:
            raise StoreError(
                f"{path} cannot be {'read' if read_only else 'written'} as a vote file: {wrong}"
            ) from None

    def close(self) -> None:
        # The last process to close it turns it into a single file, which can be copied. While
        # others use it, or if it is read-only, this fails.
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        if self._connection.in_transaction:  # part of one that has begun
            yield self._connection
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as wrong:
            raise StoreError(f"{self.path} could not be written: {wrong}") from None

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as wrong:
            raise StoreError(f"{self.path} cannot be read: {wrong}") from None


class SqliteVotes(VoteStore, VotesFile):
    """The votes on pairs in a file of votes."""


class SqliteVerdictVotes(VerdictVoteStore, VotesFile):
    """The votes on single conversations in a file of votes."""


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether a file has any tables."""
    return bool(connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])


def prepare_file(connection: sqlite3.Connection, path: Path) -> None:
    """Make commits durable, and create the tables in a new file."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            set_durability(connection, path)
            break
        # Two processes may start at once: SQLite does not wait for a change of the journal mode.
        except sqlite3.OperationalError as wrong:
            if "locked" not in str(wrong) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    if has_tables(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    if not has_tables(connection):  # another process may have been faster
        for statement in TABLES.split(";\n"):
            connection.execute(statement)
    connection.execute("COMMIT")


def check_is_votes(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a vote file, or has tables of another version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION or version < VERSION:
        raise StoreError(f"{path} is not a Parley vote file: move it to another folder")
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer version of Parley (schema version {version}; this "
            f"Parley reads version {VERSION}): update Parley"
        )
    if stranger := find_stranger(connection, TABLES):
        raise StoreError(
            f"Parley does not read {path}, because the file contains {stranger}, which Parley did "
            "not create and which could falsify votes"
        )
