"""Which rows of a run move with it from store to store, and in which order they are written."""

from __future__ import annotations

from typing import NamedTuple

from parley.store.sql.rows import COLUMNS

# a run that was being played when it was copied: its copy is an interrupted run
INTERRUPTED = ("interrupted", "the run was being played when it was copied")
INTERRUPT = (
    ("UPDATE matches SET state = 'stopped' WHERE {run} AND state = 'running'", ()),
    (
        "UPDATE runs SET state = 'stopped', status = ?, reason = ? WHERE {run}",
        INTERRUPTED,
    ),
)


class MovedTable(NamedTuple):
    """The columns of a table that move, and the order of its rows."""

    columns: str
    order: str


# All columns but the numbers of calls, which each store gives itself, and the process that plays
# the run, which does not move.
MOVED = {
    "runs": MovedTable(
        "id, created, config, identity, quotation_secret, state, status, reason, planned, spent, "
        "prices, unanswered, health, origin, digest",
        "id",
    ),
    "history": MovedTable(COLUMNS["history"], "number"),
    "items": MovedTable(COLUMNS["items"], "number"),
    "matches": MovedTable(
        f"{COLUMNS['matches']}, state, reason, rounds, began, ended, violations, apart, tokens, "
        "digest",
        "number",
    ),
    "calls": MovedTable(COLUMNS["calls"], "id"),
    "devices": MovedTable(COLUMNS["devices"], "number"),
    "effects": MovedTable(COLUMNS["effects"], "match, round, number"),
    "rounds": MovedTable(COLUMNS["rounds"], "match, first"),
    "scores": MovedTable(COLUMNS["scores"], "match, seat, metric, judge"),
    "violations": MovedTable(COLUMNS["violations"], "match, number"),
    "notes": MovedTable(COLUMNS["notes"], "match, number"),
    "recalled": MovedTable(COLUMNS["recalled"], "match, seat"),
    "transferred": MovedTable(COLUMNS["transferred"], "number"),
    "people_verdicts": MovedTable(COLUMNS["people_verdicts"], "match, seat"),
    "batches": MovedTable(f"{COLUMNS['batches']}, ended", "number"),
    "batch_requests": MovedTable(f"{COLUMNS['batch_requests']}, failed", "batch, number"),
    "part_results": MovedTable(COLUMNS["part_results"], "name"),
}


def select_moved(table: str) -> str:
    """The query for the rows of a table that move."""
    columns, order = MOVED[table]
    return f"SELECT {columns} FROM {table} ORDER BY {order}"
