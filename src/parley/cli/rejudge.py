"""`parley rejudge`: score recorded matches again by other judges."""

from __future__ import annotations

from functools import partial

import click

from parley.cli.env_file import check_env
from parley.cli.playing import played
from parley.cli.progress_line import fetching
from parley.cli.run import forecasted, panels, refuse_unwanted
from parley.cli.shared_options import (
    as_json,
    assigned,
    at_once,
    in_format,
    in_store,
    with_options,
    within_calls,
    within_usd,
)
from parley.config.experiment_file import words_of
from parley.runs import player as runs
from parley.runs.rejudge import asked_of, rejudging
from parley.store.sqlite import folder as stores


@click.command()
@click.argument("run")
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    metavar="ROLE=[ALIAS=]PROVIDER/NAME",
    help="Who judges; repeat it for a panel.",
)
@click.option(
    "-M",
    "options",
    multiple=True,
    metavar="ALIAS.KEY=VALUE",
    help="An option of a judge: temperature, base_url, …",
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="ADDRESS=FILE",
    help="Replace a prompt of the judges.",
)
@click.option("--seed", type=int, help="For other draws of the same judges.")
@within_usd
@within_calls
@click.option(
    "--dry-run", is_flag=True, help="Say what calls, tokens and money to expect, and call nothing."
)
@click.option("--yes", is_flag=True, help="Ask no question before spending.")
@click.option("--name", help="A name of your own for what is judged again.")
@in_store
@at_once
@in_format
@as_json
def command(
    run: str,
    roles: tuple[str, ...],
    options: tuple[str, ...],
    prompts: tuple[str, ...],
    seed: int | None,
    budget_usd: float | None,
    max_calls: int | None,
    dry_run: bool,
    yes: bool,
    name: str | None,
    store: str | None,
    concurrency: int | None,
    form: str,
    as_json: bool,
) -> int:
    """Judge the matches of RUN (an id, its beginning, or a path) again, into a run of its own: no
    contestant is called.

    \b
    parley rejudge last --role judge=openai/gpt-4.1
    parley rejudge last --role judge=a=openai/gpt-4.1 --role judge=b=anthropic/claude-sonnet-4-5
    parley show last --part rejudged          what has changed
    """
    check_env()
    place = stores.folder(store)
    path = stores.find(run, place)
    experiment = asked_of(path)
    experiment.instruments = panels(experiment, roles)
    with_options(experiment.models, options)
    experiment.prompts = {
        address: words_of(file) for address, file in assigned(prompts, "--prompt").items()
    }
    experiment.override(
        budget_usd=budget_usd, max_calls=max_calls, name=name, concurrency=concurrency
    )
    with fetching():
        prepared = rejudging(path, experiment, seed=seed, keyless=dry_run)
    if dry_run:
        return forecasted(prepared, as_json, form)
    if not yes:
        refuse_unwanted(prepared)
    return played(
        partial(runs.start, prepared, place), as_json=as_json, form=form, quiet=prepared.attended
    )
