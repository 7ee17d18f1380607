"""`parley export`: write a run into a file."""

from __future__ import annotations

import click

from parley.cli.progress_line import say, show_status
from parley.cli.run_line import describe_run
from parley.cli.shared_options import in_store, parse_run_file
from parley.cli.shell_completion import complete_runs
from parley.store import find_run, open_store


@click.command()
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@click.option(
    "--to",
    "form",
    type=click.Choice(["parley"]),
    required=True,
    help="Choose the file format: `parley` is a run file, which any store can import.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="Write to this file.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@in_store
def command(run: str, form: str, output: str, force: bool, store: str | None) -> None:
    """Write RUN (an id, the start of one, a name or a path) into one file, which `parley import`
    adds to another store.

    The file has all matches, replies, scores and digests, and people's votes on single
    conversations. A run can be exported while it is played: the copy is an interrupted run.
    """
    path = parse_run_file(output)
    ref = open_store(store).find(run)
    with show_status() as tell:
        open_store(ref.store).export_run(ref, path, force, tell)
        tell("")
    say(f"written to {path}: {describe_run(find_run(path.absolute()))}")
