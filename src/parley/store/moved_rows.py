"""The rows of a run as they move from store to store."""

from __future__ import annotations

from parley.store.tables import RUN_TABLES, list_names

# a run that was being played when it was copied: its copy is an interrupted run
INTERRUPTED = ("interrupted", "the run was being played when it was copied")
INTERRUPT = (
    ("UPDATE matches SET state = 'stopped' WHERE {run} AND state = 'running'", ()),
    (
        "UPDATE runs SET state = 'stopped', status = ?, reason = ? WHERE {run}",
        INTERRUPTED,
    ),
)


def select_moved(name: str) -> str:
    """The query for the rows of a table that move."""
    table = RUN_TABLES[name]
    return f"SELECT {list_names(table.moved)} FROM {name} ORDER BY {table.order}"
