"""The limits of a run that workers share: what each of them was granted, in the database."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from parley.errors import Replaced
from parley.store.postgres.database_tables import LOCK
from parley.store.rows import encode_json
from parley.store.shared_limits import (
    CALLS,
    SLACK,
    USD,
    GrantAnswer,
    GrantRequest,
    Holding,
    SlotShare,
)

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

T = TypeVar("T")

BEFORE = 0  # stands for the worker in the rows of what was spent before there were workers
TURN = 5.0  # seconds after which slots that cannot be shared evenly go to other workers
# one worker after the other changes grants; the lock ends with the transaction
LOCK_GRANTS = "SELECT pg_advisory_xact_lock(%s, %s)"
IS_ALIVE = "SELECT state = 'alive' FROM workers WHERE worker = %s"
READ = (
    "SELECT g.worker, g.what, g.amount, g.spent, g.wanted, COALESCE(w.state = 'alive', false) "
    "FROM grants g LEFT JOIN workers w ON w.worker = g.worker "
    "WHERE g.run = %s AND g.what = ANY(%s)"
)
COUNT_ALIVE = "SELECT COUNT(*) FROM workers WHERE run = %s AND state = 'alive'"
WRITE = (
    "INSERT INTO grants (run, worker, what, amount, spent, wanted) VALUES (%s, %s, %s, %s, %s, %s) "
    "ON CONFLICT (run, worker, what) DO UPDATE SET amount = EXCLUDED.amount, "
    "spent = EXCLUDED.spent, wanted = EXCLUDED.wanted"
)
SAVE_BEFORE = (
    "INSERT INTO grants (run, worker, what, amount, spent) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT DO NOTHING"
)
# A crash of the server may forget the last slots: they are given out twice then, and nothing else
# happens. So nobody waits for the disk here.
NOT_DURABLE = "SET LOCAL synchronous_commit = off"
RESERVE = (
    "WITH quick AS (SELECT set_config('synchronous_commit', 'off', true)) "
    "INSERT INTO rates AS r (run, what, at) "
    "SELECT %(run)s, %(what)s, clock_timestamp() + make_interval(secs => %(span)s - %(credit)s) "
    "FROM quick ON CONFLICT (run, what) DO UPDATE SET at = greatest("
    "r.at + make_interval(secs => %(correction)s), "
    "clock_timestamp() - make_interval(secs => %(credit)s)) + make_interval(secs => %(span)s) "
    "RETURNING extract(epoch FROM r.at - clock_timestamp())::float8"
)


class UsesConnection(Protocol):
    """Runs a function with a connection to the database, in the thread of that connection. After
    the connection broke, the function is called again with a new one."""

    def __call__(self, work: Callable[[Connection], T], /) -> Awaitable[T]: ...


class GrantRow(NamedTuple):
    """What one worker holds of one limit."""

    worker: int
    what: str
    amount: float
    spent: float
    wanted: float  # what it was refused, beyond what it uses
    is_alive: bool


class PostgresGrants:
    """The grants of one worker. All amounts are totals, so that asking twice changes nothing."""

    def __init__(self, use: UsesConnection, run: int, worker: int) -> None:
        self._use, self._run, self._worker = use, run, worker

    async def ask(self, requests: Mapping[str, GrantRequest]) -> GrantAnswer:
        return await self._use(lambda connection: self._ask(connection, requests))

    async def give_back(self, holdings: Mapping[str, Holding], all: bool) -> Mapping[str, float]:
        return await self._use(lambda connection: self._give_back(connection, holdings, all))

    async def share_slots(self, name: str, limit: int, wanted: int, used: int) -> SlotShare:
        return await self._use(
            lambda connection: self._share_slots(connection, name, limit, wanted, used)
        )

    async def reserve_rate(
        self, name: str, rate: float, amount: float, credit: float, correction: float = 0.0
    ) -> float:
        span = amount / rate
        values = {
            "run": self._run,
            "what": name,
            "span": span,
            "credit": credit,
            "correction": correction / rate,
        }

        def reserve(connection: Connection) -> float:
            (ends,) = connection.execute(RESERVE, values).fetchone() or (0.0,)
            return float(ends) - span

        return await self._use(reserve)

    def _ask(self, connection: Connection, requests: Mapping[str, GrantRequest]) -> GrantAnswer:
        with connection.transaction():
            self._lock(connection)
            for what, asked in requests.items():
                if asked.before:
                    values = (self._run, BEFORE, what, asked.before, asked.before)
                    connection.execute(SAVE_BEFORE, values)
            rows = self._read(connection, list(requests))
            (alive,) = connection.execute(COUNT_ALIVE, (self._run,)).fetchone() or (1,)
            answer = decide(requests, rows, self._worker, alive)
            changed = []
            for what, asked in requests.items():
                wanted, spent = 0.0, asked.spent
                if not answer.is_enough:
                    wanted, spent = max(0.0, asked.needed - asked.used), spent + asked.stuck
                changed.append((what, answer.amounts[what], spent, wanted))
            self._write(connection, changed, answer.amounts)
        return answer

    def _give_back(
        self, connection: Connection, holdings: Mapping[str, Holding], all: bool
    ) -> dict[str, float]:
        with connection.transaction():
            self._lock(connection)
            rows = self._read(connection, list(holdings))
            waits = any(row.is_alive and row.wanted and row.worker != self._worker for row in rows)
            mine = {row.what: row for row in rows if row.worker == self._worker}
            amounts, changed = {}, []
            for what, holding in holdings.items():
                before = mine.get(what)
                held = before.amount if before else 0.0
                amounts[what] = holding.used if all or waits else max(held, holding.used)
                now = (amounts[what], holding.spent, before.wanted if before else 0.0)
                if before is None or now != before[2:5]:
                    changed.append((what, *now))
            if changed:
                self._write(connection, changed, amounts)
        return amounts

    def _share_slots(
        self, connection: Connection, name: str, limit: int, wanted: int, used: int
    ) -> SlotShare:
        with connection.transaction():
            self._lock(connection)
            rows = [row for row in self._read(connection, [name]) if row.is_alive]
            others = [row for row in rows if row.worker != self._worker]
            mine = next((row for row in rows if row.worker == self._worker), None)
            wishes = {row.worker: int(row.wanted) for row in others} | {self._worker: wanted}
            (turn,) = connection.execute(
                "SELECT floor(extract(epoch FROM clock_timestamp()) / %s)::bigint", (TURN,)
            ).fetchone() or (0,)
            fair = fair_shares(limit, wishes, turn)[self._worker]
            free = limit - sum(int(row.amount) for row in others)
            share = SlotShare(fair=max(0, min(fair, free)), held=max(used, min(fair, free)))
            if mine is None or (mine.amount, mine.wanted) != (share.held, wanted):
                if mine is not None and share.held <= mine.amount:
                    connection.execute(NOT_DURABLE)
                values = (self._run, self._worker, name, share.held, 0.0, wanted)
                connection.execute(WRITE, values)
        return share

    def _lock(self, connection: Connection) -> None:
        """Let no other worker change grants meanwhile. A worker that was declared dead gets
        nothing."""
        connection.execute(LOCK_GRANTS, (LOCK + 1, self._run))
        (is_alive,) = connection.execute(IS_ALIVE, (self._worker,)).fetchone() or (False,)
        if not is_alive:
            raise Replaced

    def _read(self, connection: Connection, names: Sequence[str]) -> list[GrantRow]:
        return [GrantRow(*row) for row in connection.execute(READ, (self._run, names))]

    def _write(
        self,
        connection: Connection,
        changed: Sequence[tuple[str, float, float, float]],
        amounts: Mapping[str, float],
    ) -> None:
        """Write what this worker holds, also as the spending that readers add up."""
        for what, amount, spent, wanted in changed:
            connection.execute(WRITE, (self._run, self._worker, what, amount, spent, wanted))
        spending = encode_json({"calls": round(amounts[CALLS]), "usd": amounts.get(USD)})
        connection.execute(
            "UPDATE workers SET spent = %s WHERE worker = %s", (spending, self._worker)
        )


def decide(
    requests: Mapping[str, GrantRequest], rows: Sequence[GrantRow], worker: int, alive: int
) -> GrantAnswer:
    """What a worker gets. `rows`: what all workers hold; `alive`: how many of them are alive."""
    held = {row.what: row.amount for row in rows if row.worker == worker}
    others = dict.fromkeys(requests, 0.0)
    for row in rows:
        others[row.what] += row.amount if row.worker != worker else 0.0
    room = {
        what: math.inf if asked.limit is None else asked.limit - others[what]
        for what, asked in requests.items()
    }
    missing = {what for what, asked in requests.items() if asked.needed > room[what] + SLACK}
    if missing:
        amounts = {what: asked.used for what, asked in requests.items()}
        free = {what: room[what] - amount for what, amount in amounts.items()}
        return GrantAnswer(False, amounts, others, may_come_back(missing, free, rows, worker))
    amounts = {}
    for what, asked in requests.items():
        # near the limit, something is left for the others
        ahead = min(asked.most - asked.needed, (room[what] - asked.needed) / (2 * alive))
        ahead = max(0.0, math.floor(ahead) if what == CALLS else ahead)
        amounts[what] = max(held.get(what, 0.0), asked.needed + ahead)
    return GrantAnswer(True, amounts, others, False)


def may_come_back(
    missing: set[str], free: Mapping[str, float], rows: Sequence[GrantRow], worker: int
) -> bool:
    """Whether other workers may give back something of what is missing: one that holds more than
    it has spent, or one that waits too and could go on with what is free."""
    others = [row for row in rows if row.is_alive and row.worker != worker]
    if any(row.what in missing and row.amount > row.spent + SLACK for row in others):
        return True
    waiting = {row.worker for row in others if row.wanted}
    stuck = {row.worker for row in others if row.wanted > free[row.what] + SLACK}
    return bool(waiting - stuck)


def fair_shares(limit: int, wishes: Mapping[int, int], turn: int) -> dict[int, int]:
    """Share slots out evenly; nobody gets more than its wish. Slots that are left over go to other
    workers every turn."""
    shares = dict.fromkeys(wishes, 0)
    workers = sorted(wishes)
    start = turn % len(workers)
    order = workers[start:] + workers[:start]
    while limit and (unmet := [each for each in order if shares[each] < wishes[each]]):
        each_gets = max(1, limit // len(unmet))
        for worker in unmet:
            more = min(each_gets, wishes[worker] - shares[worker], limit)
            shares[worker] += more
            limit -= more
    return shares
