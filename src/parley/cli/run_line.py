"""A run in one line."""

from __future__ import annotations

from parley.errors import StoreError
from parley.store import read_run
from parley.store.types import ENDED, RunRef
from parley.tables import plural


def describe_run(ref: RunRef) -> str:
    """A run in one line: what was played, and how far it has come."""
    try:
        with read_run(ref) as reader:
            info, counts = reader.info, reader.matches.counts()
    except StoreError as wrong:
        return str(wrong)
    name = f" {info.config.name!r}" if info.config.name else ""
    models = ", ".join(info.config.contestants)
    played = sum(counts.get(state, 0) for state in ENDED)
    return (
        f"{info.id}{name}: {info.identity['task']}, {models}; {info.state}, "
        f"{plural(played, 'match', 'matches')} played"
    )
