"""Connections to a PostgreSQL store, and queries on the tables of one run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from parley.errors import StoreAway, StoreError, UsageError
from parley.store.postgres.addresses import FORM, StoreAddress
from parley.store.tables import RUN_TABLES

try:
    import psycopg
    from psycopg.conninfo import make_conninfo
    from psycopg.errors import (
        DiskFull,
        Error,
        InsufficientPrivilege,
        OperationalError,
        ProgrammingError,
        ReadOnlySqlTransaction,
    )
except ImportError:
    raise UsageError(
        "a PostgreSQL store needs the extra `postgres` (missing: psycopg): "
        "pip install 'parley-eval[postgres]'"
    ) from None

if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]

OLDEST = 140000  # the oldest server, as PostgreSQL numbers its versions
PATIENCE = 10  # seconds to connect
LOOKS = 5  # at two sessions, to see whether they are the same
REMEDY = "restore the database from a backup"
SCHEMA = "parley"
TABLES = (*RUN_TABLES, "workers", "grants", "rates")  # with rows of runs
TABLE_NAME = re.compile(rf"\b(?:FROM|JOIN) ({'|'.join(TABLES)})\b")
# The server ends the session of a machine that has vanished after about a minute.
KEEPALIVE = "tcp_keepalives_idle = 30", "tcp_keepalives_interval = 10", "tcp_keepalives_count = 3"
# PostgreSQL cannot store the character 0 in a text.
ESCAPES = (("\x01", "\x01\x02"), ("\x00", "\x01\x03"))
READ_AT_ONCE = 2000  # rows that are fetched together
SESSION = "SELECT pg_backend_pid()"
# addresses of poolers that give each connection a session of its own
_OWN_SESSIONS: set[str] = set()
RIGHTS_ON_TABLES = (
    f"ask the owner of the schema `{SCHEMA}` to grant this user USAGE on the schema, and on its "
    'tables SELECT to read runs or ALL to write them: see the docs page "Where runs are stored"'
)


def connect(address: StoreAddress) -> Connection:
    """Connect to the database; every statement is a transaction unless one has begun."""
    connection = open_session(address)
    try:
        version = connection.info.server_version
        if version < OLDEST:
            raise StoreError(
                f"{address.public} is a PostgreSQL server of version {version // 10000}, but "
                f"Parley needs version {OLDEST // 10000} or newer: update the server"
            )
        # one message, because each costs a round trip
        settings = (f"search_path = {SCHEMA}", "cursor_tuple_fraction = 1", *KEEPALIVE)
        said = connection.execute("".join(f"SET {each}; " for each in settings) + SESSION)
        while said.nextset():
            pass
        if said.fetchone() != (connection.info.backend_pid,):
            refuse_shared_sessions(connection, address)
    except OperationalError as wrong:
        connection.close()
        raise StoreAway(explain_no_connection(address, wrong)) from None
    except BaseException:
        connection.close()
        raise
    return connection


def open_session(address: StoreAddress) -> Connection:
    """A session with the settings of the server."""
    try:
        return psycopg.connect(
            make_conninfo(address.public, **address.secrets),
            autocommit=True,
            connect_timeout=PATIENCE,
            application_name="parley",
        )
    except ProgrammingError:  # its message may contain parts of the address
        raise UsageError(
            f"the address of the store cannot be read: expected {FORM}, for example "
            "postgresql://me@localhost/parley"
        ) from None
    except OperationalError as wrong:
        raise StoreAway(explain_no_connection(address, wrong)) from None


def refuse_shared_sessions(connection: Connection, address: StoreAddress) -> None:
    """Refuse a pooler (such as PgBouncer) that gives a session of the server to one client after
    the other. Locks and settings of a session would then be those of other clients."""
    if address.public in _OWN_SESSIONS:
        return
    with open_session(address) as other:
        # in turn: a session that is free after one query can answer the next one
        seen = [each.execute(SESSION).fetchone() for each in (connection, other) * LOOKS]
    if len(set(seen)) != 2 or seen[0::2] != [seen[0]] * LOOKS:
        raise StoreError(
            f"{address.public} is a connection pooler that shares sessions between clients "
            "(PgBouncer calls it pool_mode = transaction), but Parley needs sessions of its own: "
            "give the address of the server itself, or set pool_mode = session for this database"
        )
    _OWN_SESSIONS.add(address.public)


def explain_no_connection(address: StoreAddress, wrong: Exception) -> str:
    """Why there is no connection, and what to do about it."""
    said = address.hide_secrets(first_line(wrong))
    if "does not exist" in said and "database" in said:
        remedy = "create the database (createdb), or correct its name"
    elif "password" in said or "authentication" in said or "pg_hba" in said:
        remedy = "check the user, and give the password in PGPASSFILE or PGPASSWORD"
    else:
        remedy = "check the address, and that the server is running"
    return f"cannot connect to {address.public}: {said}; {remedy}"


def first_line(wrong: Exception) -> str:
    """What a driver says, in one line."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    first = lines[0] if lines else type(wrong).__name__
    return first.removeprefix("connection failed: ").rstrip(".:")


def explain_unwritable(
    address: StoreAddress, wrong: Exception, rights: str = RIGHTS_ON_TABLES
) -> str:
    """Why the database cannot be written, and what to do about it. `rights`: what to do about
    missing rights."""
    said = address.hide_secrets(first_line(wrong))
    if isinstance(wrong, ReadOnlySqlTransaction):
        return "the database is read-only: give the address of the primary server"
    if isinstance(wrong, InsufficientPrivilege):
        return f"{said}: {rights}"
    if isinstance(wrong, DiskFull):
        return f"{said}: make room on the disk of the server, then resume the run"
    if isinstance(wrong, OperationalError):
        return (
            f"the connection to the database was lost ({said}): resume the run when the database "
            "is back"
        )
    return said


@contextmanager
def unwritable_explained(address: StoreAddress, rights: str = RIGHTS_ON_TABLES) -> Iterator[None]:
    """Turn errors of the driver into errors for the user."""
    try:
        yield
    except Error as wrong:
        why = explain_unwritable(address, wrong, rights)
        raise error_for(wrong)(f"{address.public} cannot be written: {why}") from None


@contextmanager
def unreadable_explained(
    address: StoreAddress, place: str, *others: type[Exception]
) -> Iterator[None]:
    """Turn errors of the driver, and others that mean the same, into errors for the user.
    `place`: what is read."""
    faults: tuple[type[Exception], ...] = (Error, *others)
    try:
        yield
    except faults as wrong:
        why = address.hide_secrets(first_line(wrong))
        if isinstance(wrong, InsufficientPrivilege):
            why += f": {RIGHTS_ON_TABLES}"
        raise error_for(wrong)(f"{place} cannot be read: {why}") from None


def error_for(wrong: Exception) -> type[StoreError]:
    """The kind of error for the user: whether the same may succeed later."""
    return StoreAway if isinstance(wrong, OperationalError) else StoreError


@lru_cache(maxsize=1024)
def for_run(query: str, run: int) -> str:
    """A query on the tables of one run, as PostgreSQL takes it. Each table is limited to the run,
    and PostgreSQL puts these limits into the query."""
    tables = dict.fromkeys(TABLE_NAME.findall(query))
    views = ", ".join(
        f"{table} AS NOT MATERIALIZED (SELECT * FROM {SCHEMA}.{table} WHERE run = {run:d})"
        for table in tables
    )
    return f"WITH {views} {with_marks(query)}" if views else with_marks(query)


@lru_cache(maxsize=1024)
def with_marks(query: str) -> str:
    """A query with the marks for values that psycopg takes."""
    return query.replace("%", "%%").replace("?", "%s")


def escape(text: str) -> str:
    """A text without the character 0."""
    for character, written in ESCAPES:
        text = text.replace(character, written)
    return text


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    for character, written in reversed(ESCAPES):
        text = text.replace(written, character)
    return text


def unescape_row(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(unescape(value) if isinstance(value, str) else value for value in row)


class RunQueries:
    """Queries on one run, in a transaction."""

    def __init__(self, connection: Connection, run: int, escapes: bool) -> None:
        """`escapes`: whether texts of this run are escaped."""
        self._connection, self._run, self.escapes = connection, run, escapes

    def execute(self, query: str, values: Sequence[Any] = (), /) -> QueryRows:
        return QueryRows(self._connection, for_run(query, self._run), values, self.escapes)


def queries_on(connection: Connection, run: int) -> RunQueries:
    """Queries on one run; they need a transaction."""
    row = connection.execute("SELECT escapes FROM runs WHERE run = %s", (run,)).fetchone()
    (escapes,) = row or (False,)
    return RunQueries(connection, run, escapes)


class QueryRows:
    """The rows that a query gives. Iterating them needs little memory."""

    def __init__(
        self, connection: Connection, query: str, values: Sequence[Any], escapes: bool
    ) -> None:
        self._connection, self._query, self._values = connection, query, values
        self._escapes = escapes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        with self._connection.cursor(name=f"rows_{id(self)}") as cursor:
            cursor.itersize = READ_AT_ONCE
            cursor.execute(self._query.encode(), self._values)
            yield from map(unescape_row, cursor) if self._escapes else cursor

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows = self._connection.execute(self._query.encode(), self._values).fetchall()
        return list(map(unescape_row, rows)) if self._escapes else rows

    def fetchone(self) -> tuple[Any, ...] | None:
        row = self._connection.execute(self._query.encode(), self._values).fetchone()
        return unescape_row(row) if row is not None and self._escapes else row
