"""`parley rejudge`: score recorded matches again with other judges."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from parley.cli.playing import play_and_print
from parley.cli.progress_line import say, show_downloads
from parley.cli.run import parse_panels, print_forecast, read_prompts, refuse_unwanted
from parley.cli.shared_options import (
    allow_options,
    as_json,
    in_format,
    in_store,
    read_allowed,
    run_options,
    set_model_options,
    spending_options,
    with_task,
)
from parley.cli.shell_completion import complete_runs
from parley.options import from_flags
from parley.providers._env_file import find_env_faults
from parley.runs import start
from parley.runs.rejudge import experiment_for_judges, prepare_judging
from parley.store import open_store


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    metavar="ROLE=[ALIAS=]PROVIDER/NAME",
    help="Add a judge (repeat the option for a panel of judges).",
)
@click.option(
    "-M",
    "model_options",
    multiple=True,
    metavar="ALIAS.KEY=VALUE",
    help="Set an option of a judge, such as temperature or base_url (repeatable).",
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="ADDRESS=FILE",
    help="Replace one of the judge prompts with the contents of a file (repeatable).",
)
@click.option(
    "--seed",
    type=int,
    help="Set the random seed. Another seed requests new replies from the same judges.",
)
@run_options("budget_usd", "max_calls", "concurrency", "name", "batch")
@allow_options
@spending_options
@with_task
@in_store
@in_format
@as_json
def command(
    run: str,
    roles: tuple[str, ...],
    model_options: tuple[str, ...],
    prompts: tuple[str, ...],
    seed: int | None,
    dry_run: bool,
    yes: bool,
    task: str | None,
    store: str | None,
    form: str,
    as_json: bool,
    **options: Any,
) -> int:
    """Judge the matches of RUN (an id, the start of one, a name or a path) again.

    The new scores are stored in a new run. No contestant is called.

    \b
    parley rejudge last --role judge=openai/gpt-4.1
    parley rejudge last --role judge=a=openai/gpt-4.1 --role judge=b=anthropic/claude-sonnet-4-5
    parley show last --part rejudged          compare old and new scores
    """
    for fault in find_env_faults():
        say(fault)
    place = open_store(store)
    ref = place.find(run)
    experiment = experiment_for_judges(ref)
    experiment.allowed = read_allowed(options)
    experiment.override(
        roles=parse_panels(roles), prompts=read_prompts(prompts), given=from_flags(**options)
    )
    set_model_options(experiment.models, model_options)
    with show_downloads():
        prepared = prepare_judging(
            ref, experiment, seed=seed, need_keys=not dry_run, task_file=task
        )
    if dry_run:
        return print_forecast(prepared, as_json, form)
    if not yes:
        refuse_unwanted(prepared)
    play = partial(start.play_new_run, prepared, place)
    return play_and_print(play, prepared, place, as_json=as_json, form=form).code
