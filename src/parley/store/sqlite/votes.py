"""The votes of people on pairs of conversations, in one SQLite file in the folder of the runs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import orjson

from parley.errors import StoreError
from parley.statistics.preferences import (
    CHOICES,
    ConversationPair,
    ConversationSide,
    Preference,
)
from parley.store import Annotator, Study
from parley.store.sqlite.reader import connect_to_read
from parley.store.sqlite.rows import encode_json, set_durability

VOTES_FILE = "annotations.sqlite"
APPLICATION, VERSION = 0x50524C56, 1  # "PRLV" in the file's header
PATIENCE = 30.0  # seconds to wait while others write
TABLES = """
CREATE TABLE studies (
    id INTEGER PRIMARY KEY, runs TEXT NOT NULL UNIQUE, seed INTEGER NOT NULL, ties INTEGER NOT NULL, created REAL NOT NULL);
CREATE TABLE pairs (
    study INTEGER NOT NULL, number INTEGER NOT NULL, dataset TEXT NOT NULL, item TEXT NOT NULL,
    a_run TEXT NOT NULL, a_match INTEGER NOT NULL, a_model TEXT NOT NULL, a_score REAL NOT NULL,
    b_run TEXT NOT NULL, b_match INTEGER NOT NULL, b_model TEXT NOT NULL, b_score REAL NOT NULL,
    PRIMARY KEY (study, number)) WITHOUT ROWID;
CREATE TABLE annotators (
    id INTEGER PRIMARY KEY, study INTEGER NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL, token BLOB UNIQUE,
    created REAL NOT NULL, UNIQUE (study, folded));
CREATE TABLE votes (
    id INTEGER PRIMARY KEY, study INTEGER NOT NULL, pair INTEGER NOT NULL, annotator INTEGER NOT NULL, choice TEXT NOT NULL,
    at REAL NOT NULL, replaced REAL);
CREATE UNIQUE INDEX votes_once ON votes (study, pair, annotator) WHERE replaced IS NULL;
CREATE TABLE held (
    study INTEGER NOT NULL, pair INTEGER NOT NULL, annotator INTEGER NOT NULL, until REAL NOT NULL,
    PRIMARY KEY (study, pair, annotator)) WITHOUT ROWID;
"""  # noqa: E501
PAIR_TYPES = (int, str, str, *((str, int, str, int | float) * 2))
PAIR = "number, dataset, item, a_run, a_match, a_model, a_score, b_run, b_match, b_model, b_score"


class SqliteVotes:
    """A file of votes; with `read_only` nothing in it is changed."""

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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

    def _damaged(self, what: str) -> NoReturn:
        raise StoreError(f"{self.path} is damaged: {what}")

    def _study(self, id: Any, runs: Any, seed: Any, ties: Any) -> Study:
        try:
            names = orjson.loads(runs)
        except (ValueError, TypeError):
            names = None
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            self._damaged(f"the list of runs of study {id} cannot be read")
        if not isinstance(seed, int):
            self._damaged(f"the random seed of study {id} must be a whole number, not {seed!r:.40}")
        return Study(id, tuple(names), seed, bool(ties))

    def find_study(self, runs: Sequence[str]) -> Study | None:
        rows = self._rows(
            "SELECT id, runs, seed, ties FROM studies WHERE runs = ?", encode_json(sorted(runs))
        )
        return self._study(*rows[0]) if rows else None

    def create_study(self, runs: Sequence[str], seed: int, ties: bool) -> Study:
        with self.transaction() as to:
            to.execute(
                "INSERT OR IGNORE INTO studies (runs, seed, ties, created) VALUES (?, ?, ?, ?)",
                (encode_json(sorted(runs)), seed, ties, time.time()),
            )
        found = self.find_study(runs)
        assert found is not None
        return found

    def add_pairs(self, study: Study, pairs: Sequence[ConversationPair], after: int) -> None:
        rows = [
            (study.id, after + n, pair.dataset, pair.item, *pair.a, *pair.b)
            for n, pair in enumerate(pairs, 1)
        ]
        with self.transaction() as to:
            if (
                to.execute("SELECT COUNT(*) FROM pairs WHERE study = ?", (study.id,)).fetchone()[0]
                == after
            ):
                to.executemany(
                    f"INSERT INTO pairs (study, {PAIR}) VALUES ({', '.join('?' * 12)})", rows
                )

    def pairs(self, study: Study) -> dict[int, ConversationPair]:
        rows = self._rows(f"SELECT {PAIR} FROM pairs WHERE study = ? ORDER BY number", study.id)
        for row in rows:
            if not all(map(isinstance, row, PAIR_TYPES)):
                self._damaged(f"pair {row[0]!r:.40} of study {study.id} cannot be read")
        return {
            number: ConversationPair(
                dataset, item, ConversationSide(*sides[:4]), ConversationSide(*sides[4:])
            )
            for number, dataset, item, *sides in rows
        }

    def add_annotator(self, study: Study, name: str) -> Annotator:
        with self.transaction() as to:
            to.execute(
                "INSERT OR IGNORE INTO annotators (study, name, folded, created) "
                "VALUES (?, ?, ?, ?)",
                (study.id, name, name.casefold(), time.time()),
            )
        rows = self._rows(
            "SELECT id, study, name FROM annotators WHERE study = ? AND folded = ?",
            study.id,
            name.casefold(),
        )
        return Annotator(*rows[0])

    def annotators(self, study: Study) -> list[Annotator]:
        rows = self._rows(
            "SELECT id, study, name FROM annotators WHERE study = ? ORDER BY id", study.id
        )
        for id, _, name in rows:
            if not isinstance(name, str):
                self._damaged(f"annotator {id} has no name")
        known = {id for id, *_ in rows}
        voting = self._rows("SELECT DISTINCT annotator FROM votes WHERE study = ?", study.id)
        if strangers := [id for (id,) in voting if id not in known]:
            self._damaged(f"annotator {strangers[0]!r:.40} has voted, but is not registered")
        return [Annotator(*row) for row in rows]

    def set_token(self, who: Annotator, digest: bytes) -> None:
        with self.transaction() as to:
            to.execute("UPDATE annotators SET token = ? WHERE id = ?", (digest, who.id))

    def find_token(self, digest: bytes) -> tuple[Study, Annotator] | None:
        rows = self._rows(
            "SELECT s.id, s.runs, s.seed, s.ties, a.id, a.study, a.name FROM annotators a "
            "JOIN studies s ON a.study = s.id "
            "WHERE token = ?",
            digest,
        )
        for id, runs, seed, ties, *person in rows:
            return self._study(id, runs, seed, ties), Annotator(*person)
        return None

    def votes(self, study: Study) -> dict[int, dict[int, Preference]]:
        found: dict[int, dict[int, Preference]] = {
            pair: {}
            for (pair,) in self._rows(
                "SELECT number FROM pairs WHERE study = ? ORDER BY number", study.id
            )
        }
        for pair, annotator, choice in self._rows(
            "SELECT pair, annotator, choice FROM votes WHERE study = ? ORDER BY id", study.id
        ):
            if pair not in found or choice not in CHOICES:
                self._damaged(
                    f"study {study.id} has an invalid vote {choice!r:.40} on pair {pair!r:.40}"
                )
            found[pair][annotator] = choice  # a later vote replaces the earlier one
        return found

    def record_vote(self, study: Study, number: int, who: Annotator, choice: Preference) -> None:
        now, place = time.time(), (study.id, number, who.id)
        with self.transaction() as to:
            to.execute(
                "UPDATE votes SET replaced = ? WHERE study = ? AND pair = ? AND annotator = ? "
                "AND replaced IS NULL",
                (now, *place),
            )
            to.execute(
                "INSERT INTO votes (study, pair, annotator, choice, at) VALUES (?, ?, ?, ?, ?)",
                (*place, choice, now),
            )

    def count_replaced(self, study: Study) -> dict[int, int]:
        rows = self._rows(
            "SELECT annotator, COUNT(*) FROM votes WHERE study = ? AND replaced IS NOT NULL "
            "GROUP BY annotator",
            study.id,
        )
        return dict(rows)

    def held_pairs(self, study: Study) -> dict[int, set[int]]:
        held: dict[int, set[int]] = {}
        for pair, annotator in self._rows(
            "SELECT pair, annotator FROM held WHERE study = ? AND until >= ?",
            study.id,
            time.time(),
        ):
            held.setdefault(pair, set()).add(annotator)
        return held

    def hold_pair(self, study: Study, who: Annotator, number: int, seconds: float) -> None:
        now = time.time()
        with self.transaction() as to:
            to.execute("DELETE FROM held WHERE until < ?", (now,))
            self.release_pair(study, who)
            to.execute(
                "INSERT INTO held VALUES (?, ?, ?, ?)", (study.id, number, who.id, now + seconds)
            )

    def release_pair(self, study: Study, who: Annotator, number: int | None = None) -> None:
        with self.transaction() as to:
            to.execute(
                "DELETE FROM held WHERE study = ? AND annotator = ? AND pair = COALESCE(?, pair)",
                (study.id, who.id, number),
            )


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether a file has any tables."""
    return bool(connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])


def prepare_file(connection: sqlite3.Connection, path: Path) -> None:
    """Make commits durable, and create the tables if the file is new."""
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
    connection.execute("BEGIN IMMEDIATE")
    if not has_tables(connection):
        for statement in TABLES.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def check_is_votes(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a vote file, or was written by a newer Parley."""
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise StoreError(f"{path} is not a vote file of Parley: move it to another folder")
    if version > VERSION:
        raise StoreError(f"{path} was written by a newer version of Parley: update Parley")
