"""`parley import`: add runs from files to a store."""

from __future__ import annotations

import click

from parley.cli.progress_line import say, show_status
from parley.cli.run_line import describe_run
from parley.cli.shared_options import in_store, parse_run_file
from parley.store import open_store


@click.command()
@click.argument("form", metavar="FORMAT", type=click.Choice(["parley"]))
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path())
@in_store
def command(form: str, files: tuple[str, ...], store: str | None) -> None:
    """Add the runs in FILE… to a store. FORMAT is `parley`: run files, as `parley export` writes
    them.

    Replies, scores, digests and signatures stay the same, and an unfinished run can be resumed in
    the new store. A file whose record was changed is refused, and so is a run that the store has.
    """
    place = open_store(store)
    for path in map(parse_run_file, files):
        with show_status() as tell:
            ref = place.import_run(path, tell)
            tell("")
        say(f"imported into {place.name}: {describe_run(ref)}")
