"""`parley resume`: go on where a run stopped."""

from __future__ import annotations

from functools import partial

import click

from parley.cli.env_file import check_env
from parley.cli.playing import played
from parley.cli.progress_line import fetching, say
from parley.cli.shared_options import (
    as_json,
    at_once,
    in_format,
    in_store,
    within_calls,
    within_usd,
)
from parley.config.prepare import prepare_again
from parley.runs import player as runs
from parley.store.sqlite import folder as stores
from parley.store.sqlite.reader import SqliteReader


@click.command()
@click.argument("run")
@in_store
@at_once
@click.option(
    "--max-blocks",
    type=click.IntRange(1),
    help="Another bound on the blocks of the run, those already played included.",
)
@within_usd
@within_calls
@in_format
@as_json
def command(
    run: str,
    store: str | None,
    concurrency: int | None,
    max_blocks: int | None,
    budget_usd: float | None,
    max_calls: int | None,
    form: str,
    as_json: bool,
) -> int:
    """Go on with RUN (an id, its beginning, or a path): no reply that was recorded is asked for
    again.

    Bounds are totals of the run, what was spent before included; those that are not given stay as
    they are.
    """
    check_env()
    path = stores.find(run, stores.folder(store))
    with fetching():
        prepared = prepare_again(
            path,
            max_blocks=max_blocks,
            budget_usd=budget_usd,
            max_calls=max_calls,
            concurrency=concurrency,
        )
    with SqliteReader(path) as reader:
        if reader.info.state == "done":
            say(f"{reader.info.id} is done: nothing is left to play")
        if reader.info.config.verify is not None:
            say(
                f"{reader.info.id} looks for items only: for the run itself give its own command "
                f"again, which goes on from here"
            )
    return played(
        partial(runs.go_on, prepared, path), as_json=as_json, form=form, quiet=prepared.attended
    )
