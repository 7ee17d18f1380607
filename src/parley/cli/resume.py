"""`parley resume`: resume a run that stopped."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from parley.cli.playing import play_and_print
from parley.cli.progress_line import say, show_downloads
from parley.cli.shared_options import (
    allow_options,
    as_json,
    in_format,
    in_store,
    parse_model_options,
    read_allowed,
    run_options,
    with_task,
    with_workers,
    without_isolation,
)
from parley.cli.shell_completion import complete_runs
from parley.cli.workers_option import choose_workers
from parley.config.prepare import prepare_resume
from parley.options import from_flags
from parley.providers._env_file import find_env_faults
from parley.runs import start
from parley.store import find_run, open_store, read_run


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "-M",
    "model_options",
    multiple=True,
    metavar="ALIAS.KEY=VALUE",
    help="Change a model's endpoint or rate limits: base_url, api_key_env, server_args, "
    "concurrency, rpm or tpm (repeatable).",
)
@run_options(resume=True)
@with_workers
@with_task
@without_isolation
@allow_options
@in_store
@in_format
@as_json
def command(
    run: str,
    model_options: tuple[str, ...],
    workers: str | None,
    task: str | None,
    unsafe: bool,
    store: str | None,
    form: str,
    as_json: bool,
    **options: Any,
) -> int:
    """Resume RUN (an id, the start of one, a name or a path).

    Recorded replies are reused, so you do not pay for them again. Limits apply to the whole run,
    including the calls that it made before it stopped. Limits that you leave out stay as they were.
    """
    for fault in find_env_faults():
        say(fault)
    ref, allowed = find_run(run, store), read_allowed(options)
    on_workers = choose_workers(workers, ref.store, task, unsafe)
    with show_downloads():
        prepared = prepare_resume(
            ref,
            from_flags(**options),
            task_file=task,
            allowed=allowed,
            model_options=parse_model_options(model_options),
            unsafe=unsafe,
        )
    with read_run(ref) as reader:
        if reader.info.state == "done":
            say(f"{reader.info.id} is done: there is nothing to resume")
        if reader.info.config.screening is not None:
            say(
                f"{reader.info.id} only screened items for another run. To start that run, "
                "repeat its command; it will use this screening"
            )
    play = partial(on_workers.resume if on_workers else start.resume_run, prepared, ref)
    place = open_store(ref.store)
    return play_and_print(play, prepared, place, as_json=as_json, form=form).code
