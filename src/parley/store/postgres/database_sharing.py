"""Runs that workers play: how one is opened for them, how far they are, and how it ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

from parley import __version__
from parley.errors import StoreError, UsageError
from parley.store.changes import refuse_changed
from parley.store.config import Config, split_config
from parley.store.owner import Owner
from parley.store.postgres.connections import REMEDY, queries_on
from parley.store.postgres.database_history import write_change, write_entry, write_seal
from parley.store.postgres.database_tables import LOCK, OPEN_MATCHES, SAME_SUMS
from parley.store.refusals import refuse_played
from parley.store.rows import encode_json
from parley.store.shared_runs import LEASE, RunEnd, SealResult, SharedProgress, SpentBefore

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

LOCK_RUN = (
    "SELECT run, shared, owner, pg_try_advisory_xact_lock(%s, run) "
    "FROM runs WHERE id = %s FOR UPDATE"
)
COUNTED = (
    "SELECT COALESCE(spent, '{}'), COALESCE(unanswered, '{}'), COALESCE(health, '{}'), calls, "
    "is_alive FROM (SELECT spent, unanswered, health, 0::bigint AS calls, TRUE AS is_alive "
    "FROM runs WHERE run = %s UNION ALL "
    "SELECT spent, unanswered, health, calls, state = 'alive' FROM workers WHERE run = %s) "
    "AS counted"
)
# workers whose lease has lapsed, or which have no connection any more
FORGET_ALIVE = "UPDATE workers SET state = 'dead', playing = 0 WHERE run = %s AND state = 'alive'"
# `null` calls: they are among those of the run
FORGET_COUNTS = (
    """UPDATE workers SET spent = '{"calls": null}', unanswered = NULL, health = NULL """
    "WHERE run = %s"
)
ADD_COUNTS = "UPDATE runs SET spent = %s, unanswered = %s, health = %s WHERE run = %s"
REOPEN_MATCHES = (
    "UPDATE matches SET worker = NULL, returned_by = NULL, returns = 0, "
    "state = CASE state WHEN 'planned' THEN state ELSE 'stopped' END "
    f"WHERE run = %s AND ({OPEN_MATCHES} OR state = 'failed')"
)
SHARE = (
    "UPDATE runs SET shared = %s, config = %s, spent = %s, ending = NULL, planner = NULL, "
    "plan_line = NULL, owner = NULL, token = NULL, state = 'running', status = NULL, "
    "reason = NULL, digest = NULL, changes = changes + 1, changed = %s WHERE run = %s"
)
ALIVE = "state = 'alive' AND until > clock_timestamp()"
# While the server was away, leases lapsed although nobody died. So before a run is sealed, its
# workers have the time of a lease to come back: they may hold replies.
IS_BUSY = (
    "SELECT EXISTS (SELECT 1 FROM workers WHERE run = %s AND state = 'alive' AND GREATEST(until, "
    "pg_postmaster_start_time() + make_interval(secs => %s)) > clock_timestamp())"
)
PROGRESS = (
    "SELECT r.state, r.status, r.reason, r.ending, r.planned, r.plan_line, "
    "(SELECT COUNT(*) FROM matches m WHERE m.run = r.run AND m.state = 'failed'), "
    f"w.calls, w.ended, w.playing, w.alive FROM runs r, LATERAL (SELECT "
    "COALESCE(SUM(calls), 0)::bigint AS calls, COALESCE(SUM(ended), 0)::bigint AS ended, "
    "COALESCE(SUM(playing), 0)::bigint AS playing, "
    f"COUNT(*) FILTER (WHERE {ALIVE}) AS alive FROM workers WHERE run = r.run) w WHERE r.id = %s"
)
END_RUN = (
    "UPDATE runs SET state = %s, status = %s, reason = %s, "
    "prices = COALESCE(%s, prices), changes = changes + 1, changed = %s WHERE run = %s"
)


class WorkerCounts(NamedTuple):
    """What a worker, or a process that played a run alone, has counted."""

    spent: Mapping[str, float | None]
    unanswered: Mapping[str, Mapping[str, int]]  # by alias and role
    health: Mapping[str, Mapping[str, int]]  # by alias
    calls: int  # that a worker has recorded
    is_alive: bool

    @property
    def requests(self) -> float | None:
        """How many requests were sent, at least those with a reply: a worker that dies saves its
        last count no more."""
        saved = self.spent.get("calls", 0)
        if saved is None:
            return None
        return max(saved, self.calls) or self.spent.get("calls")


def lock_free_run(connection: Connection, id: str, place: str) -> int | None:
    """Lock a run that nobody plays, until the end of the transaction; returns its number. None if
    workers play it."""
    found = connection.execute(LOCK_RUN, (LOCK, id)).fetchone()
    if found is None:
        raise StoreError(f"there is no such run: {place}")
    run, shared, owner, is_free = found
    if is_free:
        return int(run)
    if shared is None:
        refuse_played(place, Owner.of(owner or ""))
    return None


def share_run(
    connection: Connection, id: str, place: str, config: Config, before: Callable[[], SpentBefore]
) -> Literal["shared", "joined"]:
    """Open a run for workers, with what earlier sessions counted."""
    with connection.transaction():
        run = lock_free_run(connection, id, place)
        if run is None:
            refuse_other_config(connection, id, place, config)
            return "joined"
        refuse_changed(queries_on(connection, run), place, SAME_SUMS, REMEDY)
        spent = encode_json(before()._asdict())
        fold_workers(connection, run)
        connection.execute(REOPEN_MATCHES, (run,))
        values = __version__, config.encoded().decode(), spent, time.time(), run
        connection.execute(SHARE, values)
        write_entry(connection, run, "opened", {})
        settings = split_config(config.encoded().decode()).settings
        write_change(connection, run, "settings", {"settings": settings})
    return "shared"


def refuse_other_config(connection: Connection, id: str, place: str, config: Config) -> None:
    """Refuse to change limits or endpoints while workers play."""
    row = connection.execute("SELECT config FROM runs WHERE id = %s", (id,)).fetchone()
    if row and Config.decoded(row[0]) != config:
        raise UsageError(
            f"workers play {place} now, so its limits and endpoints cannot change: stop it first "
            f"(`parley stop {id}`), then resume it with the new ones"
        )


def fold_workers(connection: Connection, run: int) -> None:
    """Add what workers have counted to the counts of the run. Nobody may play it."""
    connection.execute(FORGET_ALIVE, (run,))
    rows = connection.execute(COUNTED, (run, run)).fetchall()
    sums = sum_counts(
        WorkerCounts(orjson.loads(spent), orjson.loads(unanswered), orjson.loads(health), *others)
        for spent, unanswered, health, *others in rows
    )
    connection.execute(ADD_COUNTS, (*sums, run))
    connection.execute(FORGET_COUNTS, (run,))
    for table in ("grants", "rates"):
        connection.execute(f"DELETE FROM {table} WHERE run = %s".encode(), (run,))


def sum_counts(rows: Iterable[WorkerCounts]) -> tuple[str | None, str | None, str | None]:
    """What the run and its workers have counted together: spending, unanswered requests and the
    health of endpoints, as JSON."""
    spent, unanswered, health = [], [], []
    for row in rows:
        spent.append({**row.spent, "calls": row.requests})
        unanswered.append(row.unanswered)
        # calls of a worker that is gone wait for nothing
        health.append(
            {
                alias: {what: n for what, n in each.items() if row.is_alive or what != "waiting"}
                for alias, each in row.health.items()
            }
        )
    sums = sum_spending(spent), sum_requests(unanswered), sum_requests(health)
    texts = [encode_json(each) if each else None for each in sums]
    return texts[0], texts[1], texts[2]


def sum_spending(facts: Iterable[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The sum of calls and money; money is None if nobody counted any."""
    found: dict[str, float | None] = {}
    for each in facts:
        for what in ("calls", "usd"):
            if (value := each.get(what)) is not None:
                found[what] = (found.get(what) or 0) + value
    return found


def sum_requests(facts: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """The sum of counts by alias and role, or by alias and name."""
    found: dict[str, Counter[str]] = {}
    for each in facts:
        for alias, counts in each.items():
            found.setdefault(alias, Counter()).update(counts)
    return {alias: dict(counts) for alias, counts in found.items()}


def read_progress(connection: Connection, id: str, place: str) -> SharedProgress:
    """How far the workers of a run are. The work does not grow with the run."""
    row = connection.execute(PROGRESS, (id,)).fetchone()
    if row is None:
        raise StoreError(f"there is no such run: {place}")
    state, status, reason, ending, planned, line, failed, calls, ended, playing, alive = row
    end = RunEnd.decoded(ending) if ending else None
    return SharedProgress(
        state, status, reason or "", end, planned, ended, failed, calls, playing, alive, line or ""
    )


def ask_to_end(connection: Connection, id: str, place: str, end: RunEnd) -> None:
    """Say how a run ends, unless that is decided."""
    found = connection.execute(
        "UPDATE runs SET ending = COALESCE(ending, %s), changes = changes + 1 "
        "WHERE id = %s AND shared IS NOT NULL AND state = 'running'",
        (end.encoded(), id),
    )
    if not found.rowcount:
        raise UsageError(
            f"no workers play {place}, so there is nothing to stop (if a process plays it alone, "
            "press Ctrl-C there)"
        )


def seal_run(
    connection: Connection, run: int, prices: Sequence[Mapping[str, Any]] | None
) -> SealResult:
    """Set the state and the digest of a run that ends, unless a worker is left."""
    with connection.transaction():
        found = connection.execute(
            "SELECT state, shared, ending FROM runs WHERE run = %s FOR UPDATE", (run,)
        ).fetchone()
        if found is None:
            return "over"
        state, shared, ending = found
        if state != "running" or shared is None or ending is None:
            return "over"
        (is_busy,) = connection.execute(IS_BUSY, (run, LEASE)).fetchone() or (False,)
        if is_busy:
            return "busy"
        fold_workers(connection, run)
        connection.execute(
            "UPDATE matches SET worker = NULL, state = 'stopped' "
            "WHERE run = %s AND state = 'running'",
            (run,),
        )
        end = RunEnd.decoded(ending)
        kept = None if prices is None else encode_json(prices)
        values = end.state, end.status, end.reason or None, kept, time.time(), run
        connection.execute(END_RUN, values)
        if prices is not None:
            write_change(connection, run, "prices", {"prices": prices})
        write_seal(connection, run)
    return "sealed"
