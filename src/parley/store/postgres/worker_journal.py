"""The journal of a worker: one of several that write a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from psycopg.errors import DataError, Error, UniqueViolation

from parley.errors import Replaced, StoreError
from parley.match.protocol import DeviceUse
from parley.match.record import Record
from parley.plans import MatchSpec
from parley.store.journal import Journal, OpenMatches
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import explain_unwritable
from parley.store.postgres.database_writer import apply_group
from parley.store.postgres.steady_connection import SteadyConnection, is_temporary
from parley.store.rows import CommitGroup, encode_json
from parley.store.shared_runs import MOST_RETURNS
from parley.store.types import EndpointRecord, RunRef

if TYPE_CHECKING:
    from parley.match.match import Outcome
    from parley.store.postgres.connections import Connection

# Each commit moves the number of commits of its worker from n - 1 to n, unless the worker was
# declared dead. So a worker that was replaced cannot write, and after a broken connection the
# number tells whether the commit happened.
FENCE = (
    "UPDATE workers SET commits = %s, calls = calls + %s, ended = ended + %s "
    "WHERE worker = %s AND commits = %s AND state = 'alive'"
)
# One worker after the other changes a run: the row is locked until the end of the transaction. So
# the ids of calls become visible in their order. A worker that waits for this lock does not hold
# the lock of its own row, which its sign of life needs.
CHANGE = "UPDATE runs SET changes = changes + 1, changed = %s WHERE run = %s"
# A match that a model did not answer goes back, so that another worker tries it.
GIVE_BACK = (
    "UPDATE matches SET worker = NULL, returned_by = worker, reason = ?, returns = returns + 1, "
    f"state = CASE WHEN returns < {MOST_RETURNS} THEN 'stopped' ELSE 'failed' END "
    "WHERE {run} AND number = ? AND worker = ? AND state = 'running'"
)
DEVICES_OF_A_WORKER = 1024  # numbers of devices that each worker may give
# A statement that hangs would hold up all other workers.
LONGEST_STATEMENT = "statement_timeout = '60s'"


class WorkerWriter:
    """Writes the groups of one worker. It waits while the database is away."""

    def __init__(
        self, steady: SteadyConnection, address: StoreAddress, id: str, run: int, worker: int
    ) -> None:
        self.place, self.was_replaced = address.location_of(id), False
        self._steady, self._address, self._run, self._worker = steady, address, run, worker
        self._commits = 0

    def write(self, group: CommitGroup) -> None:
        """Write a group in one transaction, durably; nothing is written if this worker was
        replaced."""
        self._commits += 1
        self._steady.run(lambda connection: self._write(connection, group))

    def _write(self, connection: Connection, group: CommitGroup) -> None:
        try:
            try:
                self._commit(connection, group, careful=False)
            except (DataError, UniqueViolation):
                self._commit(connection, group, careful=True)
        except UniqueViolation as wrong:
            raise StoreError(f"this is already on record: {wrong.diag.message_detail}") from None
        except Error as wrong:
            if is_temporary(connection, wrong):
                raise  # it is tried again
            raise StoreError(explain_unwritable(self._address, wrong)) from None

    def _commit(self, connection: Connection, group: CommitGroup, careful: bool) -> None:
        calls, ends = len(group.inserts.get("calls", ())), len(group.ends)
        with connection.transaction():
            connection.execute(CHANGE, (time.time(), self._run))
            values = self._commits, calls, ends, self._worker, self._commits - 1
            if not connection.execute(FENCE, values).rowcount:
                self._check_committed(connection)
                return
            apply_group(connection, self._run, group, careful)

    def _check_committed(self, connection: Connection) -> None:
        """The group was committed by an attempt whose answer was lost, or this worker was
        replaced."""
        found = connection.execute(
            "SELECT commits FROM workers WHERE worker = %s AND state = 'alive'", (self._worker,)
        ).fetchone()
        if found != (self._commits,):
            self.was_replaced = True
            raise Replaced

    def close(self) -> None:
        self._steady.close()


class WorkerJournal(Journal):
    """The journal of one worker. What is counted for a whole run is counted for each worker here;
    readers add it up."""

    writer: WorkerWriter

    def __init__(self, ref: RunRef, writer: WorkerWriter, found: OpenMatches, worker: int) -> None:
        super().__init__(ref, writer, found)
        self._worker, self._own_devices = worker, 0
        self.held: set[int] = set()  # the numbers of leased matches that have not ended
        self._thread.start()

    def add_leased(self, numbers: Sequence[int], found: OpenMatches | None) -> None:
        """Take matches that were leased just now, with what is on record for them."""
        self.held.update(numbers)
        if found is not None:
            self._kept |= found.calls
            self._effects |= found.effects
            self._chains |= found.chains

    def lease(self, spec: MatchSpec) -> Record:
        return self.open_record(spec)

    async def finish(self, number: int, outcome: Outcome) -> None:
        await super().finish(number, outcome)
        self.held.discard(number)

    async def heartbeat(self) -> None:
        """The lease of the worker says that it is alive."""

    async def fail(self, number: int, reason: str) -> None:
        self._played.pop(number, None)
        await self.commit(GIVE_BACK, (reason, number, self._worker))
        self.held.discard(number)

    async def set_spending(self, calls: int, usd: float | None) -> None:
        await self._set_own("spent", {"calls": calls, "usd": usd})

    async def set_unanswered(self, requests: Mapping[str, Mapping[str, int]]) -> None:
        await self._set_own("unanswered", requests)

    async def set_endpoint_health(self, health: Mapping[str, EndpointRecord]) -> None:
        await self._set_own("health", {alias: each._asdict() for alias, each in health.items()})

    async def _set_own(self, column: str, facts: Any) -> None:
        statement = f"UPDATE workers SET {column} = ? WHERE {{run}} AND worker = ?"
        await self.commit(statement, (encode_json(facts), self._worker))

    def number_device(self, used: DeviceUse) -> tuple[int, float]:
        if used.setup not in self._devices:
            self._own_devices += 1
            number = self._worker * DEVICES_OF_A_WORKER + self._own_devices
            self._add_device(number, used.setup)
        return self._devices[used.setup], used.seconds
