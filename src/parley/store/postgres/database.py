"""A PostgreSQL database as a store of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from parley.errors import StoreError, UsageError
from parley.store import open_store
from parley.store.address_forms import is_address, refuse_long_name
from parley.store.config import Config
from parley.store.postgres.addresses import StoreAddress, parse_address
from parley.store.postgres.connections import (
    TABLES,
    connect,
    unreadable_explained,
    unwritable_explained,
)
from parley.store.postgres.database_reader import SNAPSHOT, PostgresReader
from parley.store.postgres.database_sharing import (
    ALIVE,
    ask_to_end,
    read_progress,
    seal_run,
    share_run,
)
from parley.store.postgres.database_tables import LOCK, create_store_tables, has_store_tables
from parley.store.postgres.database_writer import create_run, open_run, replace_parts
from parley.store.refusals import refuse_running
from parley.store.run_names import choose_run
from parley.store.shared_runs import RunEnd, SealResult, SharedProgress, SpentBefore, WorkerFacts
from parley.store.types import NewRun, RunInfo, RunRef, StoredPart, StoreFacts, UnreadableRun

if TYPE_CHECKING:
    from parley.store.journal import Journal
    from parley.store.postgres.connections import Connection
    from parley.store.postgres.database_votes import PostgresVerdictVotes, PostgresVotes
    from parley.store.postgres.worker_session import PostgresWorker
    from parley.store.types import VerdictVotes


class PostgresStore:
    """The runs in a database."""

    def __init__(self, address: StoreAddress) -> None:
        self.address = address

    @classmethod
    def at(cls, given: str) -> PostgresStore:
        return cls(parse_address(given)._replace(run=""))

    @property
    def name(self) -> str:
        return self.address.public

    def _ref(self, id: str) -> RunRef:
        return RunRef(self.address.public, id, self.address.location_of(id))

    @contextmanager
    def _reading(self) -> Iterator[Connection | None]:
        """A connection in a snapshot; None if the database has no tables of Parley yet."""
        connection = connect(self.address)
        try:
            with unreadable_explained(self.address, self.address.public):
                if not has_store_tables(connection, self.address):
                    yield None
                    return
                connection.execute(SNAPSHOT)
                yield connection
        finally:
            connection.close()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection to a database that has the tables."""
        connection = connect(self.address)
        try:
            create_store_tables(connection, self.address)
            with unwritable_explained(self.address):
                yield connection
        finally:
            connection.close()

    def find(self, text: str) -> RunRef:
        refuse_long_name(text)
        if is_address(text):
            given = parse_address(text)
            if not given.run:
                raise UsageError(f"{given.public} names no run: add # and the id of a run")
            return PostgresStore(given._replace(run="")).find(given.run)
        if text.endswith(".parley"):  # a file, whatever the store is
            return open_store("runs").find(text)
        return choose_run(text, self.refs(), self.runs, self.address.public)

    def find_exact(self, id: str) -> RunRef | None:
        return next((ref for ref in self.refs() if ref.id == id), None)

    def refs(self) -> list[RunRef]:
        with self._reading() as connection:
            if connection is None:
                return []
            rows = connection.execute("SELECT id FROM runs ORDER BY changed DESC, id DESC")
            return [self._ref(id) for (id,) in rows]

    def runs(self) -> Iterator[RunInfo | UnreadableRun]:
        with self._reading() as connection:
            if connection is None:
                return
            rows = connection.execute("SELECT id FROM runs ORDER BY changed DESC, id DESC")
            for (id,) in rows.fetchall():
                ref = self._ref(id)
                try:
                    with PostgresReader(ref, self.address, connection) as reader:
                        yield reader.info
                except StoreError as wrong:
                    yield UnreadableRun(ref, str(wrong))

    def read(self, ref: RunRef) -> PostgresReader:
        return PostgresReader(ref, self.address)

    def stamp(self, ref: RunRef) -> str:
        with self._reading() as connection:
            found = (
                connection
                and connection.execute(
                    "SELECT run, changes, state FROM runs WHERE id = %s", (ref.id,)
                ).fetchone()
            )
            return "-".join(map(str, found)) if found else ""

    def watch(self, ref: RunRef) -> PostgresWatch:
        return PostgresWatch(self.address, ref)

    async def create(self, run: NewRun) -> Journal:
        with self._writing() as connection:
            create_run(connection, self.address.location_of(run.id), run)
        return await open_run(self.address, self._ref(run.id))

    async def open(self, ref: RunRef, notify: Callable[[str], None] = lambda said: None) -> Journal:
        return await open_run(self.address, ref)

    async def create_shared(self, run: NewRun) -> RunRef:
        with self._writing() as connection:
            create_run(connection, self.address.location_of(run.id), run, shared=True)
        return self._ref(run.id)

    def share(
        self, ref: RunRef, config: Config, before: Callable[[], SpentBefore]
    ) -> Literal["shared", "joined"]:
        with self._writing() as connection:
            return share_run(connection, ref.id, ref.location, config, before)

    def shared_progress(self, ref: RunRef) -> SharedProgress:
        connection = connect(self.address)
        try:
            with unreadable_explained(self.address, ref.location):
                return read_progress(connection, ref.id, ref.location)
        finally:
            connection.close()

    def ask_to_end(self, ref: RunRef, end: RunEnd) -> None:
        with self._writing() as connection:
            ask_to_end(connection, ref.id, ref.location, end)

    def seal_shared(
        self, ref: RunRef, prices: Sequence[Mapping[str, Any]] | None = None
    ) -> SealResult:
        with self._writing() as connection:
            row = connection.execute("SELECT run FROM runs WHERE id = %s", (ref.id,)).fetchone()
            return seal_run(connection, row[0], prices) if row is not None else "over"

    def keep_parts(self, ref: RunRef, parts: Sequence[StoredPart]) -> None:
        with self._writing() as connection, connection.transaction():
            replace_parts(connection, ref.id, parts)

    def open_shared_runs(self) -> list[RunRef]:
        with self._reading() as connection:
            rows = connection and connection.execute(
                "SELECT id FROM runs r WHERE shared IS NOT NULL AND state = 'running' AND (ending "
                f"IS NULL OR NOT EXISTS (SELECT 1 FROM workers WHERE run = r.run AND {ALIVE})) "
                "ORDER BY created, run"
            )
            return [self._ref(id) for (id,) in rows or ()]

    def launch_words(self) -> tuple[list[str], dict[str, str]]:
        return ["--store", self.address.public], self.address.variables

    async def join(
        self, ref: RunRef, facts: WorkerFacts, notify: Callable[[str], None]
    ) -> PostgresWorker:
        from parley.store.postgres.worker_session import PostgresWorker  # late: one command

        connection = connect(self.address)
        try:
            create_store_tables(connection, self.address)
        finally:
            connection.close()
        with unwritable_explained(self.address):
            return PostgresWorker(self.address, ref, facts, notify)

    def delete(self, ref: RunRef) -> None:
        with self._writing() as connection, connection.transaction():
            found = connection.execute(
                "SELECT run, pg_try_advisory_xact_lock(%s, run) FROM runs WHERE id = %s",
                (LOCK, ref.id),
            ).fetchone()
            if found is None:
                raise StoreError(f"there is no run {ref.id} in {self.address.public}")
            run, is_free = found
            if not is_free:
                refuse_running(ref.id)
            for table in TABLES:
                connection.execute(f"DELETE FROM {table} WHERE run = %s".encode(), (run,))

    def export_run(
        self, ref: RunRef, path: Path, replace: bool, tell: Callable[[str], None]
    ) -> None:
        from parley.store.postgres.run_transfer import export_from_database  # late: one command

        with self.read(ref) as reader:
            export_from_database(reader, path, replace, tell)

    def import_run(self, path: Path, tell: Callable[[str], None]) -> RunRef:
        from parley.store.postgres.run_transfer import import_into_database  # late: one command

        return self._ref(import_into_database(self.address, path, tell))

    def open_votes(self, refs: Sequence[RunRef] = (), read_only: bool = False) -> PostgresVotes:
        from parley.store.postgres.database_votes import PostgresVotes  # late: few commands

        if others := {ref.store for ref in refs} - {self.address.public}:
            raise UsageError(
                f"the runs are in {len(others) + 1} different stores, but votes are stored beside "
                "the runs: choose runs of one store"
            )
        return PostgresVotes(self.address, read_only)

    def open_verdict_votes(
        self, ref: RunRef | None = None, read_only: bool = False
    ) -> PostgresVerdictVotes:
        from parley.store.postgres.database_votes import PostgresVerdictVotes

        return PostgresVerdictVotes(self.address, read_only)

    def read_verdict_votes(self, ref: RunRef, run: str) -> VerdictVotes:
        with self.open_verdict_votes() as votes:
            return votes.votes(run)

    def check(self) -> StoreFacts:
        from parley.store.postgres.rights import describe_rights  # late: one command

        with self._reading() as connection:
            has_tables = connection is not None
        with connect(self.address) as connection:
            number = connection.info.server_version
            with unreadable_explained(self.address, self.address.public):
                state = describe_rights(connection, self.address, has_tables)
            (is_read_only,) = connection.execute("SHOW transaction_read_only").fetchone() or ("",)
        if is_read_only == "on":
            state = "cannot be written: the database is read-only"
        kind = f"PostgreSQL {number // 10000}.{number % 10000}"
        return StoreFacts(self.address.public, kind, state)


class PostgresWatch:
    """The changes of one run. Its connection holds no snapshot."""

    def __init__(self, address: StoreAddress, ref: RunRef) -> None:
        self._address, self._ref = address, ref
        self._connection: Connection | None = None
        self._seen: tuple[int, int] | None = None
        self.has_changed()

    def has_changed(self) -> bool:
        try:
            with unreadable_explained(self._address, self._ref.location):
                if self._connection is None:
                    self._connection = connect(self._address)
                found = self._connection.execute(
                    "SELECT run, changes FROM parley.runs WHERE id = %s", (self._ref.id,)
                ).fetchone()
        except StoreError:
            self.close()
            raise
        before, self._seen = self._seen, found
        if found is None:
            self.close()
            raise StoreError(f"there is no run {self._ref.id} in {self._address.public}")
        return before != found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
