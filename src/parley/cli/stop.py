"""`parley stop`: stop a run that workers play."""

from __future__ import annotations

import time

import click

from parley.cli.progress_line import say, show_status
from parley.cli.shared_options import in_store
from parley.cli.shell_completion import complete_runs
from parley.errors import UsageError
from parley.store import find_run, open_store
from parley.store.shared_runs import RunEnd, has_shared_runs, require_shared
from parley.tables import plural

LOOK = 0.5  # seconds between two looks at the store


@click.command()
@click.argument("run", shell_complete=complete_runs)
@in_store
def command(run: str, store: str | None) -> None:
    """Stop RUN, which workers play: they finish their calls and leave.

    You can stop a run from any machine. `parley resume RUN --workers N` continues it. To stop a run
    without workers, press Ctrl-C where it is played.
    """
    ref = find_run(run, store)
    place = open_store(ref.store)
    if not has_shared_runs(place):
        raise UsageError(
            f"{ref.location} is a file, which workers cannot play: press Ctrl-C where it is played"
        )
    shared = require_shared(place)
    shared.ask_to_end(ref, RunEnd("stopped", "interrupted", "stopped by `parley stop`"))
    with show_status() as tell:
        while (seen := shared.shared_progress(ref)).state == "running":
            if seen.alive:
                tell(f"waiting for {plural(seen.alive, 'worker')} to finish calls")
            elif shared.seal_shared(ref) == "sealed":
                continue
            time.sleep(LOOK)
        tell("")
    say(f"{ref.id} has stopped ({seen.reason})" if seen.state != "done" else f"{ref.id} is done")
