"""`parley rm`: delete runs."""

from __future__ import annotations

import sys

import click

from parley.cli.progress_line import say
from parley.cli.run_line import describe_run
from parley.cli.shared_options import in_store
from parley.cli.shell_completion import complete_runs
from parley.errors import StoreError, UsageError
from parley.results.run_facts import list_open_batches, name_batch
from parley.store import open_store, read_run
from parley.store.types import RunRef
from parley.tables import plural


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", shell_complete=complete_runs)
@in_store
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--force", is_flag=True, help="Delete also runs with batches at a provider.")
def command(runs: tuple[str, ...], store: str | None, yes: bool, force: bool) -> None:
    """Delete RUN… (ids, starts of ids, names or paths) with all matches, replies and scores.

    People's votes on the conversations are kept. A run that is still being played is not deleted.
    """
    place = open_store(store)
    refs = list(dict.fromkeys(place.find(run) for run in runs))
    for ref in refs:
        click.echo(describe_run(ref))
    if not force:
        for ref in refs:
            refuse_open_batches(ref)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "`parley rm` asks for confirmation, which needs a terminal: add "
                "--yes to delete without asking"
            )
        click.confirm(f"parley: delete {plural(len(refs), 'run')}?", abort=True, err=True)
    for ref in refs:
        open_store(ref.store).delete(ref)
    say(f"{plural(len(refs), 'run')} deleted")


def refuse_open_batches(ref: RunRef) -> None:
    """Raise an error if replies of a run are still with a provider: they are billed, and only
    this run can collect them."""
    try:
        with read_run(ref) as reader:
            run, batches = reader.info.id, list_open_batches(reader)
    except StoreError:  # a damaged run can be deleted
        return
    if not batches:
        return
    shown = ", ".join(
        name_batch(batch) + (f" as {batch.provider_id}" if batch.provider_id else "")
        for batch in batches[:3]
    )
    more = (
        f" and {plural(len(batches) - 3, 'more batch', 'more batches')}" if len(batches) > 3 else ""
    )
    raise UsageError(
        f"{run} is not deleted, because a provider still has {shown}{more}, which you pay for: "
        f"collect the replies with `parley resume {run}`, or cancel the batch at the provider (see "
        'the docs page "Batch prices") and delete the run with --force'
    )
