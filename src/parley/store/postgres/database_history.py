"""Writes the history of a run in a database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from parley.store.history import (
    SEAL,
    HistoryRow,
    is_known,
    make_entry,
    make_first_entry,
    make_seal,
)
from parley.store.postgres.connections import queries_on, with_marks
from parley.store.tables import HISTORY
from parley.store.types import HistoryKind

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

INSERT = f"INSERT INTO history (run, {HISTORY.row}) VALUES (%s, %s, %s, %s, %s, %s)"


def insert_entry(connection: Connection, run: int, entry: HistoryRow) -> None:
    """Add an entry. Its JSON has no character that PostgreSQL does not take."""
    connection.execute(INSERT.encode(), (run, *entry))


def write_first_entry(connection: Connection, run: int) -> None:
    """Begin the history of a new run, which has all its rows."""
    insert_entry(connection, run, make_first_entry(queries_on(connection, run)))


def write_entry(
    connection: Connection, run: int, kind: HistoryKind, facts: Mapping[str, Any]
) -> None:
    """Add an entry, in a transaction that makes the change itself."""
    insert_entry(connection, run, make_entry(queries_on(connection, run), kind, facts))


def write_change(
    connection: Connection, run: int, kind: HistoryKind, facts: Mapping[str, Any]
) -> None:
    """Add an entry for settings or prices, unless they have stayed the same."""
    if not is_known(queries_on(connection, run), facts):
        write_entry(connection, run, kind, facts)


def write_seal(connection: Connection, run: int) -> None:
    """Seal a run whose state has been set, in a transaction."""
    seal = make_seal(queries_on(connection, run))
    insert_entry(connection, run, seal)
    connection.execute(with_marks(SEAL.format(run=f"run = {run:d}")).encode(), (seal.digest,))
