"""Commands to try after a run."""

from __future__ import annotations

import shlex

from parley.cli.invocation import command_name
from parley.store import name_store
from parley.store.config import Config
from parley.store.types import RunRef


def list_next_steps(
    ref: RunRef, config: Config, store: str | None, has_page: bool = False
) -> list[str]:
    """Commands that show more of the run that was just played; `has_page`: its report is written
    already."""
    run = "last" if store is None else shlex.quote(ref.location)
    place = "" if store is None else f" --store {shlex.quote(name_store(store))}"
    me = command_name()
    pairs = [f"compare every pair of models: {me} show {run} --part pairs"]
    page = [f"write a report as one HTML page: {me} report {run} -o report.html"]
    return [
        *(pairs if len(config.contestants) > 1 else []),
        f"list all matches: {me} show {run} --matches",
        *([] if has_page else page),
        f"read runs and matches in a browser: {me} view{place}",
    ]
