"""What to look at after a run, as commands that can be typed here."""

from __future__ import annotations

import shlex

from parley.cli.invocation import command_name
from parley.results.result import Result
from parley.store import open_store


def list_next_steps(store: str | None) -> list[str]:
    """Commands that lead from the table of the last run to what is behind it."""
    ref = open_store(store).find("last")
    run = "last" if store is None else shlex.quote(ref.location)
    me = command_name()
    pairs = [f"who beats whom by how much: {me} show {run} --part pairs"]
    return [
        *(pairs if Result(ref).data["pairs"] else []),
        f"all matches: {me} show {run} --matches",
        f"everything on one page: {me} report {run} -o report.html",
    ]
