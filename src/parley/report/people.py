"""What people said about the conversations of a run, on its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from parley.errors import StoreError
from parley.results.human_votes import read_human_votes
from parley.store.types import RunRef
from parley.tables import Table


class PeopleSaid(NamedTuple):
    """The section on what people said."""

    anchor: str
    title: str
    words: str
    table: Table | None


def describe_people(refs: Mapping[str, RunRef], anchor: str) -> PeopleSaid | None:
    """Who people preferred in a run, or in pairs that were drawn from several runs, and whether
    they agree with the scores; None if nobody has voted. The runs are given by their ids."""
    joint = len(refs) > 1
    title = "What people said about pairs from several runs" if joint else "What people said"
    try:
        found = read_human_votes(refs, joint)
    except StoreError as wrong:
        return PeopleSaid(anchor, title, f"The votes of people are left out: {wrong}", None)
    return PeopleSaid(anchor, title, found.describe(), found.table()) if found else None
