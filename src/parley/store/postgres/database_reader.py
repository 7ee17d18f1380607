"""Reads a run from PostgreSQL, in one snapshot; a run may be read while it is played."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from parley.errors import StoreError
from parley.store.changes import find_changes
from parley.store.owner import Owner
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import (
    REMEDY,
    RunQueries,
    connect,
    unreadable_explained,
    with_marks,
)
from parley.store.postgres.database_sharing import ALIVE, COUNTED, WorkerCounts, sum_counts
from parley.store.postgres.database_tables import DIALECT, LOCK, SAME_SUMS, create_store_tables
from parley.store.reader import RunReader
from parley.store.reader.run import read_info
from parley.store.reader.snapshot import Snapshot
from parley.store.tables import RUNS
from parley.store.types import NOBODY, DigestFault, RunRef, WorkerRow
from parley.store.verdict_votes import VOTE_ROWS, VoteRow, read_vote_rows

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

IS_PLAYED = (
    "SELECT CASE WHEN shared IS NULL THEN EXISTS (SELECT 1 FROM pg_locks "
    "WHERE locktype = 'advisory' AND classid = %s "
    "AND objid = %s AND objsubid = 2 AND granted AND database = "
    "(SELECT oid FROM pg_database WHERE datname = current_database())) "
    f"ELSE EXISTS (SELECT 1 FROM workers w WHERE w.run = r.run AND {ALIVE}) END "
    "FROM runs r WHERE run = %s"
)
WORKERS = (
    f"SELECT worker, host, pid, CASE WHEN state <> 'alive' OR {ALIVE} THEN state ELSE 'dead' END, "
    "calls, ended, playing FROM workers ORDER BY worker"
)
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresSnapshot(Snapshot):
    """A snapshot of a run in the database."""

    dialect = DIALECT
    remedy = REMEDY

    def __init__(
        self, ref: RunRef, address: StoreAddress, shared: Connection | None = None
    ) -> None:
        """`shared`: a connection in a snapshot, which stays open."""
        super().__init__(ref)
        self._address, self._run, self._closes = address, 0, shared is None
        self._connection = connect(address) if shared is None else shared
        try:
            with unreadable_explained(address, ref.location):
                if shared is None:
                    create_store_tables(self._connection, address)
                    self._connection.execute(SNAPSHOT)
                found = self._connection.execute(
                    "SELECT run, escapes FROM runs WHERE id = %s", (ref.id,)
                ).fetchone()
                if found is None:
                    raise StoreError(f"there is no run {ref.id} in {address.public}")
                self._run, escapes = found
                self._queries = RunQueries(self._connection, self._run, escapes)
                self.info = read_info(self)
        except BaseException:
            self.close()
            raise

    def is_played(self, owner: Owner, heartbeat: float) -> bool:
        values = LOCK, self._run, self._run
        (is_played,) = self._connection.execute(IS_PLAYED, values).fetchone() or (False,)
        return bool(is_played)

    def why_interrupted(self) -> str:
        (is_shared,) = self.row("SELECT shared IS NOT NULL FROM runs")
        return NOBODY if is_shared else super().why_interrupted()

    def workers(self) -> list[WorkerRow]:
        return [WorkerRow(*row) for row in self.rows(WORKERS)]

    def counters(self) -> tuple[str | None, str | None, str | None]:
        with unreadable_explained(self._address, self.ref.location):
            rows = self._connection.execute(COUNTED, (self._run, self._run)).fetchall()
        by_alias = dict[str, dict[str, int]]
        return sum_counts(
            WorkerCounts(
                self.decode(spent, dict[str, float | None], "spent"),
                self.decode(unanswered, by_alias, "unanswered"),
                self.decode(health, by_alias, "health"),
                *others,
            )
            for spent, unanswered, health, *others in rows
        )

    def moved_rows(self, table: str) -> Iterator[Any]:
        """The rows of a table as they move to another store. The counts of workers move with those
        of the run."""
        rows = super().moved_rows(table)
        if table != "runs":
            yield from rows
            return
        names = [column.name for column in RUNS.moved]
        counts = dict(zip(("spent", "unanswered", "health"), self.counters(), strict=True))
        for row in rows:
            yield tuple(counts.get(name, value) for name, value in zip(names, row, strict=True))

    def close(self) -> None:
        if self._closes:
            self._connection.close()

    def row(self, query: str, *values: Any) -> Any:
        with unreadable_explained(self._address, self.ref.location):
            return self._queries.execute(query, values).fetchone()

    def rows(self, query: str, *values: Any) -> Iterator[Any]:
        with unreadable_explained(self._address, self.ref.location):
            yield from self._queries.execute(query, values)

    def vote_rows(self) -> list[VoteRow]:
        """All votes of people on single conversations of the run."""
        with unreadable_explained(self._address, self.ref.location):
            rows = self._connection.execute(with_marks(VOTE_ROWS).encode(), (self.info.id,))
            return read_vote_rows(rows, self.ref.location)

    def find_changes(
        self, report: Callable[[int], None] = lambda checked: None
    ) -> Iterator[DigestFault]:
        with unreadable_explained(self._address, self.ref.location, TypeError):
            yield from find_changes(self._queries, SAME_SUMS, report=report)


class PostgresReader(RunReader):
    """Reads a run of the database. Use it as a context manager."""

    snapshot: PostgresSnapshot

    def __init__(
        self, ref: RunRef, address: StoreAddress, shared: Connection | None = None
    ) -> None:
        """`shared`: a connection in a snapshot, which stays open."""
        super().__init__(PostgresSnapshot(ref, address, shared))
