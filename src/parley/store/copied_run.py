"""The copy of a run that was being played is an interrupted run: nobody plays it."""

from __future__ import annotations

# a statement and its values; {run} is the condition that a row belongs to the run
INTERRUPT = (
    ("UPDATE matches SET state = 'stopped' WHERE {run} AND state = 'running'", ()),
    (
        "UPDATE runs SET state = 'stopped', status = ?, reason = ? WHERE {run}",
        ("interrupted", "the run was being played when it was copied"),
    ),
)
