"""Commands to try after a run."""

from __future__ import annotations

import shlex

from parley.cli.invocation import command_name
from parley.results.result import Result
from parley.store import open_store


def list_next_steps(store: str | None) -> list[str]:
    """Commands that show more of the last run."""
    ref = open_store(store).find("last")
    run = "last" if store is None else shlex.quote(ref.location)
    me = command_name()
    pairs = [f"compare every pair of models: {me} show {run} --part pairs"]
    return [
        *(pairs if Result(ref).data["pairs"] else []),
        f"list all matches: {me} show {run} --matches",
        f"write everything to one page: {me} report {run} -o report.html",
    ]
