"""The history of a run as a whole: a chain of entries that begins with who is who.

began      the run was created, with these settings, items and copied data
opened     a process took the run, or it was opened for workers, to play it
settings   a resume changed limits, rates or addresses
prices     the prices of the models were recorded
sealed     the run stopped, and its whole record was digested

Nothing is ever removed: a run that is opened again keeps its earlier seals. The digest of a run is
that of its last entry, if this is a seal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from parley.store.config import split_config
from parley.store.dialect import ENDED_MATCHES
from parley.store.digests import (
    RunConnection,
    digest_contents,
    digest_origin,
    digest_row,
    digest_run,
)
from parley.store.rows import encode_json
from parley.store.tables import HISTORY
from parley.store.types import DigestFault, HistoryKind

ENTRIES = f"SELECT {HISTORY.row} FROM history ORDER BY number"
LAST_ENTRY = "SELECT number, digest FROM history ORDER BY number DESC LIMIT 1"
RUN = "SELECT origin, config, planned, state, status, reason, prices, digest FROM runs"
COUNT_MATCHES = "SELECT COUNT(*) FROM matches"
COUNT_ENDED = f"SELECT COUNT(*) FROM matches WHERE {ENDED_MATCHES}"
# a run that is taken to be played
REOPEN = (
    "UPDATE runs SET state = 'running', status = NULL, reason = NULL, digest = NULL WHERE {run}"
)
SEAL = "UPDATE runs SET digest = ? WHERE {run}"


class HistoryRow(NamedTuple):
    """An entry of the history of a run, as it is stored."""

    number: int
    at: float
    kind: str
    facts: str  # JSON
    digest: str


def make_entry(
    connection: RunConnection, kind: HistoryKind, facts: Mapping[str, Any]
) -> HistoryRow:
    """The next entry of the history, to be inserted in the same transaction."""
    found = connection.execute(LAST_ENTRY).fetchone()
    number, before = found or (0, connection.execute(RUN).fetchone()[0])
    row = number + 1, time.time(), kind, encode_json(facts)
    return HistoryRow(*row, digest_row(row, before))


def is_known(connection: RunConnection, facts: Mapping[str, Any]) -> bool:
    """Whether the history says this already, so that no entry is needed."""
    return facts.items() <= read_current(connection).items()


def make_first_entry(connection: RunConnection) -> HistoryRow:
    """The entry with which the history of a new run begins; the run has all its rows."""
    config = connection.execute(RUN).fetchone()[1]
    facts = {"settings": split_config(config).settings, "contents": digest_contents(connection)}
    return make_entry(connection, "began", facts)


def make_seal(connection: RunConnection) -> HistoryRow:
    """The entry that seals a run, whose state has been set. `SEAL` sets its digest."""
    _, _, _, state, status, reason, *_ = connection.execute(RUN).fetchone()
    (ended,) = connection.execute(COUNT_ENDED).fetchone()
    facts = {"state": state, "status": status, "reason": reason, "matches": ended}
    return make_entry(connection, "sealed", {**facts, "record": digest_run(connection)})


def read_current(connection: RunConnection) -> dict[str, Any]:
    """The facts of all entries together; later ones replace earlier ones."""
    found: dict[str, Any] = {}
    for row in connection.execute(ENTRIES).fetchall():
        facts = orjson.loads(row[3])
        found |= facts if isinstance(facts, dict) else {}
    return found


def find_history_faults(connection: RunConnection) -> Iterator[DigestFault]:
    """Where the facts of the run as a whole do not match its history."""
    origin, config, planned, state, status, reason, prices, digest = connection.execute(
        RUN
    ).fetchone()
    if origin != digest_origin(connection):
        yield DigestFault(
            None,
            "who is who has changed since the run began: its id, task, models, roles, parameters, "
            "prompts or another part of its configuration or identity that no resume changes",
        )
    rows = [HistoryRow(*row) for row in connection.execute(ENTRIES).fetchall()]
    if (broken := find_broken_entry(rows, origin)) is not None:
        yield DigestFault(
            None,
            f"the history of the run (settings, prices and seals) has changed, from entry {broken} "
            "on",
        )
        return
    now = read_current(connection)
    if now.get("contents") != digest_contents(connection):
        yield DigestFault(
            None, "the items, copied scores or experiences have changed since the run began"
        )
    if now.get("settings") != split_config(config).settings:
        yield DigestFault(
            None,
            "the limits, rates or addresses in the configuration are not the ones that were last "
            "recorded",
        )
    if now.get("prices") != (None if prices is None else load_or_text(prices)):
        yield DigestFault(None, "the prices are not the ones that were recorded")
    (known,) = connection.execute(COUNT_MATCHES).fetchone()
    if planned != known:
        yield DigestFault(None, f"the run has {planned} planned matches, but {known} are on record")
    (ended,) = connection.execute(COUNT_ENDED).fetchone()
    if ended < now.get("matches", 0):
        yield DigestFault(
            None,
            f"{ended} matches have ended, but {now['matches']} had when the run was last sealed",
        )
    yield from find_seal_faults(connection, rows[-1], (state, status, reason, digest), now)


def find_broken_entry(rows: Sequence[HistoryRow], origin: str | None) -> int | None:
    """The first entry whose digest is not that of the entry and of the one before it; 1 if there is
    none at all."""
    if not rows or rows[0].kind != "began":
        return 1
    first = rows[0]._replace(number=0, digest=origin or "")
    for before, row in pairwise([first, *rows]):
        if row.digest != digest_row(row[:-1], before.digest):
            return row.number
    return None


def find_seal_faults(
    connection: RunConnection,
    last: HistoryRow,
    end: tuple[str, str | None, str | None, str | None],
    now: Mapping[str, Any],
) -> Iterator[DigestFault]:
    """Where the end of a run (its state, status, reason and digest) does not match its last
    entry."""
    state, status, reason, digest = end
    if last.kind != "sealed":
        if state != "running" or (status, reason, digest) != (None, None, None):
            yield DigestFault(None, "the run is marked as stopped, but it was not sealed")
        return
    if digest is None or state == "running":
        yield DigestFault(
            None, "the run has stopped, but its digest is missing: its seal was removed"
        )
    elif digest != last.digest:
        yield DigestFault(None, "the digest of the run is not the one of its seal")
    if now.get("record") != digest_run(connection):
        yield DigestFault(
            None,
            "the run's configuration, prices, spending, final state or list of matches has "
            "changed since the run stopped",
        )


def load_or_text(text: str) -> Any:
    """The JSON in a text; the text itself if it is no JSON."""
    try:
        return orjson.loads(text)
    except ValueError:
        return text
