"""The votes of people on pairs of conversations: one SQLite file beside the runs, many voters at a
time, nothing ever deleted."""

from __future__ import annotations

import secrets
import sqlite3
import time
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import orjson

from parley.errors import StoreError, UsageError
from parley.statistics.preferences import CHOICES, Choice, Pair, Side, next_pair, votes_needed
from parley.store.sqlite.reader import opened
from parley.store.sqlite.rows import encoded, prepare

FILE = "annotations.sqlite"
APPLICATION, VERSION = 0x50524C56, 1  # "PRLV" in the file's header
HELD = 1800.0  # seconds for which a pair that somebody looks at is kept for them
PATIENCE = 30.0  # seconds in which others may write
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
PAIR = "number, dataset, item, a_run, a_match, a_model, a_score, b_run, b_match, b_model, b_score"
Taken = Literal["recorded", "same", "changed", "not needed"]


class Study(NamedTuple):
    """The pairs that were drawn from a set of runs."""

    id: int
    runs: tuple[str, ...]
    seed: int
    ties: bool


class Annotator(NamedTuple):
    """A person who votes in a study."""

    id: int
    study: int
    name: str


class Votes:
    """The file. Use it as a context manager; whoever only reads changes nothing."""

    def __init__(self, path: Path, reads: bool = False) -> None:
        self.path = path
        try:
            self._connection = (
                opened(path)
                if reads
                else sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)
            )
            try:
                if reads or filled(self._connection):
                    refuse_strange(self._connection, path)
                if not reads:
                    begin(self._connection, path)
            except BaseException:
                self._connection.close()
                raise
        except (OSError, sqlite3.Error) as wrong:
            raise StoreError(
                f"{path} cannot be {'read' if reads else 'written'} as votes: {wrong}"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # whoever is the last leaves one file, which can be copied; others or a reader prevent that
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, on disk when it is over; whoever writes meanwhile is waited for."""
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

    def study(self, runs: Sequence[str]) -> Study | None:
        """The study of a set of runs, if there is one."""
        rows = self._rows(
            "SELECT id, runs, seed, ties FROM studies WHERE runs = ?", encoded(sorted(runs))
        )
        return (
            Study(rows[0][0], tuple(orjson.loads(rows[0][1])), rows[0][2], bool(rows[0][3]))
            if rows
            else None
        )

    def begin(self, runs: Sequence[str], seed: int, ties: bool) -> Study:
        """The study of a set of runs; one that is there already stays as it is."""
        with self._writing() as to:
            to.execute(
                "INSERT OR IGNORE INTO studies (runs, seed, ties, created) VALUES (?, ?, ?, ?)",
                (encoded(sorted(runs)), seed, ties, time.time()),
            )
        found = self.study(runs)
        assert found is not None
        return found

    def add(self, study: Study, pairs: Sequence[Pair], after: int) -> None:
        """Pairs that were drawn when there were so many; if somebody else has drawn meanwhile,
        those are the pairs."""
        rows = [
            (study.id, after + n, pair.dataset, pair.item, *pair.a, *pair.b)
            for n, pair in enumerate(pairs, 1)
        ]
        with self._writing() as to:
            if (
                to.execute("SELECT COUNT(*) FROM pairs WHERE study = ?", (study.id,)).fetchone()[0]
                == after
            ):
                to.executemany(
                    f"INSERT INTO pairs (study, {PAIR}) VALUES ({', '.join('?' * 12)})", rows
                )

    def pairs(self, study: Study) -> dict[int, Pair]:
        """All pairs of a study by their numbers."""
        rows = self._rows(f"SELECT {PAIR} FROM pairs WHERE study = ? ORDER BY number", study.id)
        return {
            number: Pair(dataset, item, Side(*sides[:4]), Side(*sides[4:]))
            for number, dataset, item, *sides in rows
        }

    def annotator(self, study: Study, name: str) -> Annotator:
        """A person by name, entered if new; upper and lower case do not tell people apart."""
        shown = " ".join(unicodedata.normalize("NFKC", name).split())
        if not shown or not shown.isprintable() or len(shown) > 80:
            raise UsageError(f"the name of an annotator is 1 to 80 letters, not {name[:100]!r}")
        with self._writing() as to:
            to.execute(
                "INSERT OR IGNORE INTO annotators (study, name, folded, created) "
                "VALUES (?, ?, ?, ?)",
                (study.id, shown, shown.casefold(), time.time()),
            )
        rows = self._rows(
            "SELECT id, study, name FROM annotators WHERE study = ? AND folded = ?",
            study.id,
            shown.casefold(),
        )
        return Annotator(*rows[0])

    def annotators(self, study: Study) -> list[Annotator]:
        """All who were invited or have voted."""
        return [
            Annotator(*row)
            for row in self._rows(
                "SELECT id, study, name FROM annotators WHERE study = ? ORDER BY id", study.id
            )
        ]

    def invite(self, study: Study, name: str) -> str:
        """A new secret for a person, told once: the file keeps its digest, and an earlier one is
        worth nothing any more."""
        person, token = self.annotator(study, name), secrets.token_urlsafe(24)
        with self._writing() as to:
            to.execute("UPDATE annotators SET token = ? WHERE id = ?", (digest(token), person.id))
        return token

    def invited(self, token: str) -> tuple[Study, Annotator] | None:
        """Whose secret it is, and in which study; None if it is nobody's."""
        rows = self._rows(
            "SELECT s.id, s.runs, s.seed, s.ties, a.id, a.study, a.name FROM annotators a "
            "JOIN studies s ON a.study = s.id "
            "WHERE token = ?",
            digest(token),
        )
        for id, runs, seed, ties, *person in rows:
            return Study(id, tuple(orjson.loads(runs)), seed, bool(ties)), Annotator(*person)
        return None

    def offer(self, study: Study, who: Annotator, skipped: Collection[int] = ()) -> int | None:
        """The number of the pair that somebody is to look at, kept for them for a while; None if
        nothing is left for them."""
        with self._writing() as to:
            now = time.time()
            to.execute("DELETE FROM held WHERE until < ?", (now,))
            held: dict[int, set[int]] = {}
            for pair, annotator in to.execute(
                "SELECT pair, annotator FROM held WHERE study = ?", (study.id,)
            ):
                held.setdefault(pair, set()).add(annotator)
            found = next_pair(self._votes_by_id(study), held, who.id, skipped)
            to.execute("DELETE FROM held WHERE study = ? AND annotator = ?", (study.id, who.id))
            if found is not None:
                to.execute(
                    "INSERT INTO held VALUES (?, ?, ?, ?)", (study.id, found, who.id, now + HELD)
                )
        return found

    def release(self, study: Study, who: Annotator) -> None:
        """Somebody stops: what they looked at is free for others."""
        with self._writing() as to:
            to.execute("DELETE FROM held WHERE study = ? AND annotator = ?", (study.id, who.id))

    def vote(
        self, study: Study, number: int, who: Annotator, choice: Choice, change: bool = False
    ) -> Taken:
        """Put a vote on record. The same again changes nothing; another one replaces it only on
        demand, and both are kept."""
        if choice not in CHOICES or (choice == "tie" and not study.ties):
            raise UsageError(f"a vote is A or B{', or tie' if study.ties else ''}, not {choice!r}")
        with self._writing() as to:
            votes = self._votes_by_id(study)
            if number not in votes:
                raise UsageError(f"there is no pair {number}; there are 1 to {len(votes)}")
            given, before = votes[number], votes[number].get(who.id)
            if before == choice:
                return "same"
            if before is not None and not change:
                raise UsageError(
                    f"{who.name} has voted {before} on pair {number}: to vote "
                    f"otherwise, ask for a change"
                )
            if before is None and change:
                raise UsageError(
                    f"{who.name} has not voted on pair {number}: there is nothing to change"
                )
            to.execute(
                "DELETE FROM held WHERE study = ? AND pair = ? AND annotator = ?",
                (study.id, number, who.id),
            )
            if before is None and not votes_needed(list(given.values())):
                return "not needed"
            now, place = time.time(), (study.id, number, who.id)
            to.execute(
                "UPDATE votes SET replaced = ? WHERE study = ? AND pair = ? AND annotator = ? "
                "AND replaced IS NULL",
                (now, *place),
            )
            to.execute(
                "INSERT INTO votes (study, pair, annotator, choice, at) VALUES (?, ?, ?, ?, ?)",
                (*place, choice, now),
            )
        return "recorded" if before is None else "changed"

    def votes(self, study: Study) -> dict[int, dict[str, Choice]]:
        """All pairs, each with the votes that stand, by the names of those who gave them, in the
        order of their first votes."""
        given = self._votes_by_id(study)
        # read later: nobody votes before being entered
        names = {person.id: person.name for person in self.annotators(study)}
        return {
            pair: {names[id]: choice for id, choice in by.items()} for pair, by in given.items()
        }

    def replaced(self, study: Study) -> dict[str, int]:
        """How many votes each person has changed."""
        rows = self._rows(
            "SELECT name, COUNT(*) FROM votes v JOIN annotators a ON v.annotator = a.id "
            "WHERE v.study = ? AND replaced IS NOT NULL GROUP BY name",
            study.id,
        )
        return dict(rows)

    def _votes_by_id(self, study: Study) -> dict[int, dict[int, Choice]]:
        found: dict[int, dict[int, Choice]] = {
            pair: {}
            for (pair,) in self._rows(
                "SELECT number FROM pairs WHERE study = ? ORDER BY number", study.id
            )
        }
        for pair, annotator, choice in self._rows(
            "SELECT pair, annotator, choice FROM votes WHERE study = ? ORDER BY id", study.id
        ):
            found[pair][annotator] = choice  # a later vote takes the place of the earlier one
        return found


def digest(token: str) -> bytes:
    """What the file keeps of a secret; the secret is random and long, so that a plain digest is
    enough."""
    return blake2b(token.encode(), digest_size=32).digest()


def filled(connection: sqlite3.Connection) -> bool:
    """Whether a file holds any tables."""
    return bool(connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])


def begin(connection: sqlite3.Connection, path: Path) -> None:
    """Durable commits from now on; the tables are made if the file is new."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            prepare(connection, path)
            break
        # two begin at once: SQLite does not wait when it changes its journal
        except sqlite3.OperationalError as wrong:
            if "locked" not in str(wrong) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    connection.execute("BEGIN IMMEDIATE")
    if not filled(connection):
        for statement in TABLES.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def refuse_strange(connection: sqlite3.Connection, path: Path) -> None:
    """What holds no votes, or is newer than this program, is left alone."""
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise StoreError(f"{path} holds no votes of Parley: move it away")
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer Parley: update with `pip install -U parley-eval`"
        )
