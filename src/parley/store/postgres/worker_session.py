"""A worker in the database: its lease, its matches, and the mark of the planner."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from psycopg.errors import InsufficientPrivilege

from parley.errors import Replaced, StoreAway, StoreError
from parley.plans import MatchSpec
from parley.rules.pool import Seat
from parley.store.journal import read_open_matches
from parley.store.owner import Owner
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import queries_on, unescape_row
from parley.store.postgres.database_sharing import seal_run
from parley.store.postgres.database_tables import LOCK, OPEN_MATCHES
from parley.store.postgres.database_writer import require_durability
from parley.store.postgres.grants import PostgresGrants
from parley.store.postgres.steady_connection import (
    LONGEST_WAIT,
    ControlLine,
    Outage,
    SteadyConnection,
)
from parley.store.postgres.worker_journal import LONGEST_STATEMENT, WorkerJournal, WorkerWriter
from parley.store.refusals import refuse_played, refuse_to_join
from parley.store.shared_runs import (
    LEASE,
    RunEnd,
    SealResult,
    SpentBefore,
    WorkerFacts,
    WorkerState,
)
from parley.store.tables import MATCHES
from parley.store.types import RunRef

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

T = TypeVar("T")

JOIN = (
    "INSERT INTO workers (run, host, pid, version, until) "
    "VALUES (%s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s)) RETURNING worker"
)
RENEW = (
    "UPDATE workers SET until = clock_timestamp() + make_interval(secs => %s), playing = %s "
    "WHERE worker = %s AND state = 'alive'"
)
STAY_ALIVE = (
    "SELECT extract(epoch FROM until - clock_timestamp())::float8 FROM workers "
    "WHERE worker = %s AND state = 'alive' FOR UPDATE"
)
LOOK = "SELECT state = 'running' AND shared IS NOT NULL, ending FROM runs WHERE run = %s"
# While the server was away or did not answer, or this worker was cut off from it, leases lapsed
# although nobody died. So a worker whose own lease has nearly lapsed, or which lost its connection,
# waits for as long as a lease. A new worker trusts leases that began after the start of the server.
IS_LAPSED = (
    "w.run = %s AND w.state = 'alive' AND w.worker <> %s AND w.until < clock_timestamp() "
    "AND (%s OR (%s AND w.until - make_interval(secs => %s) > pg_postmaster_start_time()))"
)
LAPSED = f"SELECT worker FROM workers w WHERE {IS_LAPSED} FOR UPDATE SKIP LOCKED"
# A process that hangs in a transaction holds locks, for example if it was stopped in the middle of
# a COPY, for which no timeout of the server helps. Sessions that wait for such a lock are no fault.
SESSION_NAME = "parley worker "
END_SESSIONS = (
    "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN workers w "
    f"ON a.application_name = '{SESSION_NAME}' || w.worker WHERE {IS_LAPSED} "
    "AND a.datname = current_database() AND a.usename = current_user "
    "AND a.wait_event = 'ClientRead' AND a.state <> 'idle'"
)
OUT_OF_TOUCH = 0.5  # the share of its lease that a worker has left if it was out of touch
SETTLING = 0.2  # leases for which a new worker looks on
BURY = "UPDATE workers SET state = 'dead', playing = 0 WHERE worker = ANY(%s) RETURNING host, pid"
FREE = (
    "UPDATE matches SET worker = NULL, state = 'stopped' "
    "WHERE run = %s AND worker = ANY(%s) AND state = 'running'"
)
# A match that this worker gave back goes to others, if there are any.
LEASE_MATCHES = (
    "WITH free AS (SELECT number, state FROM matches WHERE run = %(run)s "
    f"AND {OPEN_MATCHES} AND worker IS NULL AND (returned_by IS DISTINCT FROM %(me)s OR NOT EXISTS "
    "(SELECT 1 FROM workers w WHERE w.run = %(run)s AND w.state = 'alive' AND w.worker <> %(me)s)) "
    "ORDER BY number LIMIT %(most)s FOR UPDATE SKIP LOCKED) "
    "UPDATE matches m SET worker = %(me)s, state = 'running', began = COALESCE(began, %(now)s) "
    "FROM free WHERE m.run = %(run)s AND m.number = free.number RETURNING "
    f"{', '.join(f'm.{column.name}' for column in MATCHES.written)}, free.state"
)
RELEASE = (
    "UPDATE matches SET worker = NULL, state = 'stopped' "
    "WHERE run = %s AND worker = %s AND state = 'running' AND number <> ALL(%s)"
)
IS_PLANNER = "SELECT 1 FROM runs WHERE run = %(run)s AND planner = %(me)s"
TAKE_PLAN = (
    "UPDATE runs SET planner = %(me)s WHERE run = %(run)s AND (planner IS NULL OR planner = %(me)s "
    "OR NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker = planner AND w.state = 'alive'))"
)
HAVE_ENDED = (
    f"SELECT NOT EXISTS (SELECT 1 FROM matches WHERE run = %s AND number BETWEEN %s AND %s "
    f"AND {OPEN_MATCHES}) AND NOT EXISTS (SELECT 1 FROM matches WHERE run = %s "
    "AND number BETWEEN %s AND %s AND state = 'failed')"
)
FAILED = (
    "SELECT COALESCE(reason, ''), COUNT(*) FROM matches m WHERE run = %s AND state = 'failed' "
    f"AND NOT EXISTS (SELECT 1 FROM matches o WHERE o.run = m.run AND o.{OPEN_MATCHES}) "
    "GROUP BY reason"
)
SET_ENDING = "UPDATE runs SET ending = %s, changes = changes + 1 WHERE run = %s AND ending IS NULL"


class PostgresWorker:
    """One worker of a run. It has two connections: one that writes, and one for short questions."""

    def __init__(
        self,
        address: StoreAddress,
        ref: RunRef,
        facts: WorkerFacts,
        notify: Callable[[str], None],
    ) -> None:
        self._address, self._ref, self._lease = address, ref, LEASE
        loop = asyncio.get_running_loop()

        def tell(text: str) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(notify, text)

        self._tell, self._run, self.number = tell, 0, 0
        self._giving_up = threading.Event()
        self._in_touch = time.monotonic()  # since then, by the monotonic clock
        self._was_out_of_touch = False
        self._is_unsure = False  # whether the database may count matches as ours that are not
        self._stages: dict[int, int] = {}  # by stage: the number of its first match
        self._line = ControlLine(address, self._prepare_line, tell)
        try:
            self._line.use_now(lambda connection: self._join(connection, facts))
            steady = SteadyConnection(address, self._prepare_writer, tell)
        except BaseException:
            self._line.close()
            raise
        writer = WorkerWriter(steady, address, ref.id, self._run, self.number)
        self._writer, self._steady = writer, steady
        found = steady.run(self._read_beginning)
        self.journal = WorkerJournal(ref, writer, found, self.number)
        self.grants = PostgresGrants(self._ask, self._run, self.number)

    def _prepare_line(self, connection: Connection) -> None:
        connection.execute(f"SET {LONGEST_WAIT}")
        if self.number:
            self._name_session(connection)

    def _name_session(self, connection: Connection) -> None:
        """Let others find the sessions of this worker."""
        connection.execute(f"SET application_name = '{SESSION_NAME}{self.number:d}'".encode())

    async def _ask(self, work: Callable[[Connection], T], /) -> T:
        """Ask something on the line for short questions."""
        try:
            return await self._line.use(work)
        except Replaced:
            self._writer.was_replaced = True
            raise

    def _join(self, connection: Connection, facts: WorkerFacts) -> None:
        with connection.transaction():
            found = connection.execute(
                "SELECT run, shared, state, config, spent FROM runs WHERE id = %s FOR KEY SHARE",
                (self._ref.id,),
            ).fetchone()
            if found is None:
                raise StoreError(f"there is no run {self._ref.id} in {self._address.public}")
            self._run, version, state, config, spent = found
            if version is None or state != "running":
                refuse_to_join(self._ref.location, self._ref.id)
            if version != facts.version:
                raise StoreError(
                    f"{self._ref.location} is played with Parley {version}, but this is Parley "
                    f"{facts.version}: install that version here"
                )
            values = self._run, facts.host, facts.pid, facts.version, self._lease
            (self.number,) = connection.execute(JOIN, values).fetchone() or (0,)
        self._name_session(connection)
        self._copies = orjson.loads(config).get("rejudged") is not None
        known = orjson.loads(spent or "{}")
        self.spent_before = SpentBefore(int(known.get("calls") or 0), known.get("usd"))

    def _prepare_writer(self, connection: Connection) -> None:
        """Hold the lock of the run together with the other workers: nobody plays it alone."""
        connection.execute(f"SET {LONGEST_STATEMENT}")
        self._name_session(connection)
        if notice := require_durability(connection, self._address):
            self._tell(notice)
        (is_ours,) = connection.execute(
            "SELECT pg_try_advisory_lock_shared(%s, %s)", (LOCK, self._run)
        ).fetchone() or (False,)
        if not is_ours:
            owner = connection.execute("SELECT owner FROM runs WHERE run = %s", (self._run,))
            (text,) = owner.fetchone() or ("",)
            refuse_played(self._ref.location, Owner.of(text or ""))

    def _read_beginning(self, connection: Connection) -> Any:
        with connection.transaction():
            return read_open_matches(queries_on(connection, self._run), "FALSE")

    @property
    def was_replaced(self) -> bool:
        return self._writer.was_replaced

    async def heartbeat(self, playing: int) -> WorkerState:
        return await self._ask(lambda connection: self._heartbeat(connection, playing))

    def _heartbeat(self, connection: Connection, playing: int) -> WorkerState:
        with connection.transaction():
            if self._stay_alive(connection) < self._lease * OUT_OF_TOUCH:
                self._in_touch, self._was_out_of_touch = time.monotonic(), True
            connection.execute(RENEW, (self._lease, playing, self.number))
            found = connection.execute(LOOK, (self._run,)).fetchone()
        is_open, ending = found or (False, None)
        end = RunEnd.decoded(ending) if ending else None
        died = self._bury_dead(connection)
        return WorkerState(end, not is_open, died)

    def _stay_alive(self, connection: Connection) -> float:
        """Keep others from declaring this worker dead until the end of the transaction. Raises an
        error if somebody has. Returns how many seconds of its lease are left."""
        alive = connection.execute(STAY_ALIVE, (self.number,)).fetchone()
        if alive is None:
            raise Replaced
        return float(alive[0])

    def _bury_dead(self, connection: Connection) -> list[str]:
        """Declare workers dead whose lease has lapsed, and free their matches."""
        age = time.monotonic() - max(self._line.connected, self._in_touch)
        is_new = not (self._line.was_lost or self._was_out_of_touch)
        is_new = is_new and age > self._lease * SETTLING
        values = self._run, self.number, age > self._lease, is_new, self._lease
        with connection.transaction():
            rows = connection.execute(LAPSED, values).fetchall()
            if not rows:
                with suppress(InsufficientPrivilege), connection.transaction():
                    connection.execute(END_SESSIONS, values)
                return []
            numbers = [number for (number,) in rows]
            died = connection.execute(BURY, (numbers,)).fetchall()
            connection.execute(FREE, (self._run, numbers))
        return [f"process {pid} on {host}" for host, pid in died]

    async def lease(self, most: int) -> list[MatchSpec]:
        rows, found = await self._ask(lambda connection: self._lease_matches(connection, most))
        specs = sorted((spec_from(row) for row in rows), key=lambda spec: spec.number)
        self.journal.add_leased([spec.number for spec in specs], found)
        return specs

    def _lease_matches(self, connection: Connection, most: int) -> tuple[list[Any], Any]:
        if self._is_unsure:  # the answer to an earlier attempt was lost
            self._release(connection, self.journal.held)
        self._is_unsure, found = True, None
        with connection.transaction():
            self._stay_alive(connection)
            values = {"run": self._run, "me": self.number, "most": most, "now": time.time()}
            rows = connection.execute(LEASE_MATCHES, values).fetchall()
            queries = queries_on(connection, self._run)
            begun = [row[0] for row in rows if row[-1] != "planned" or self._copies]
            if begun:
                found = read_open_matches(
                    queries,
                    "m.number IN (SELECT value::int FROM json_array_elements_text(?::json))",
                    (orjson.dumps(begun).decode(),),
                )
        self._is_unsure = False
        return [unescape_row(row) if queries.escapes else row for row in rows], found

    def _release(self, connection: Connection, kept: set[int]) -> None:
        """Give back all matches but some."""
        connection.execute(RELEASE, (self._run, self.number, list(kept)))

    async def first_of_stage(self, stage: int) -> int:
        if stage not in self._stages:
            self._stages[stage] = await self._ask_number(
                "SELECT MIN(number) FROM matches WHERE run = %s AND stage = %s", self._run, stage
            )
        return self._stages[stage]

    async def last_match(self) -> int:
        return await self._ask_number("SELECT MAX(number) FROM matches WHERE run = %s", self._run)

    async def _ask_number(self, query: str, *values: Any) -> int:
        def ask(connection: Connection) -> int:
            (found,) = connection.execute(query.encode(), values).fetchone() or (None,)
            return int(found or 0)

        return await self._ask(ask)

    async def take_plan(self) -> bool:
        def take(connection: Connection) -> bool:
            values = {"me": self.number, "run": self._run}
            if connection.execute(IS_PLANNER, values).rowcount:
                return True
            return bool(connection.execute(TAKE_PLAN, values).rowcount)

        return await self._ask(take)

    async def set_plan_line(self, text: str) -> None:
        await self._change("UPDATE runs SET plan_line = %s WHERE run = %s", text, self._run)

    async def end_run(self, end: RunEnd) -> None:
        await self._change(SET_ENDING, end.encoded(), self._run)

    async def _change(self, statement: str, *values: Any) -> None:
        await self._ask(lambda connection: connection.execute(statement.encode(), values) and None)

    def have_ended(self, first: int, last: int) -> bool:
        values = (self._run, first, last) * 2

        def ask(connection: Connection) -> bool:
            (found,) = connection.execute(HAVE_ENDED, values).fetchone() or (False,)
            return bool(found)

        return last < first or self._line.use_now(ask)

    async def failed_matches(self) -> Mapping[str, int]:
        return await self._ask(
            lambda connection: dict(connection.execute(FAILED, (self._run,)).fetchall())
        )

    async def leave(self) -> None:
        def leave(connection: Connection) -> None:
            with connection.transaction():
                self._release(connection, set())
                connection.execute(
                    "UPDATE runs SET planner = NULL WHERE run = %s AND planner = %s",
                    (self._run, self.number),
                )
                connection.execute(
                    "UPDATE workers SET state = 'left', playing = 0 "
                    "WHERE worker = %s AND state = 'alive'",
                    (self.number,),
                )

        await self._ask(leave)

    async def seal(self, prices: Sequence[Mapping[str, Any]] | None) -> SealResult:
        attempts = 0

        def seal(connection: Connection) -> SealResult:
            nonlocal attempts
            attempts += 1
            found = seal_run(connection, self._run, prices)
            # the answer to an earlier attempt may be lost
            return "sealed" if found == "over" and attempts > 1 else found

        return await self._ask(seal)

    def wait_for_store(self, work: Callable[[], T]) -> T:
        outage = Outage(self._address, self._tell, self._giving_up)
        while True:
            try:
                found = work()
            except StoreAway as wrong:
                outage.wait(wrong)
            else:
                outage.end()
                return found

    def give_up(self) -> None:
        """Stop waiting for a database that is away."""
        self._giving_up.set()
        self._steady.give_up()
        self._line.give_up()

    async def close(self) -> None:
        await self.journal.close()  # its connection holds the lock of the run
        await asyncio.to_thread(self._line.close)


def spec_from(row: Sequence[Any]) -> MatchSpec:
    """The match in a leased row."""
    number, block, item, repeat, seed, seats, unscored, stage, arm, _ = row
    cast = {Seat.of(key): alias for key, alias in orjson.loads(seats).items()}
    fill = frozenset(map(Seat.of, orjson.loads(unscored))) if unscored else frozenset()
    return MatchSpec(number, block, item, repeat, seed, cast, fill, stage, arm)
