"""`parley run`: run a task or an experiment file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from parley.cli.next_steps import list_next_steps
from parley.cli.playing import play_and_print
from parley.cli.progress_line import say, show_downloads
from parley.cli.shared_options import (
    SectionedCommand,
    allow_options,
    as_json,
    in_format,
    parse_assignments,
    parse_columns,
    read_allowed,
    run_options,
    set_model_options,
    spending_options,
    with_columns,
    with_workers,
    without_isolation,
)
from parley.cli.shell_completion import complete_models, complete_tasks
from parley.cli.workers_option import choose_workers
from parley.config.experiment import sandbox_choice
from parley.config.experiment_file import open_experiment, read_prompt
from parley.config.prepare import Prepared
from parley.config.prices import is_billed
from parley.errors import UsageError
from parley.money import format_usd, is_free
from parley.options import from_flags
from parley.providers._env_file import find_env_faults
from parley.results.part import check_parts
from parley.runs.screening import forecast_with_screening, screen_and_play
from parley.runs.transfer import load_transferred
from parley.store import open_store
from parley.tables import Table, format_number, plural, terminal_width

if TYPE_CHECKING:
    from parley.runs.forecast import Forecast

ASK_FROM = 1.0  # USD
SECTIONS = {
    "Common options": (
        "-m", "-M", "--role", "--set", "--items", "--repeats", "--seed", "--budget-usd", "--name",
        "--dry-run",
    ),
    "Models and prompts": ("--exclude", "--prompt", "--standardise"),
    "Items": ("--dataset", "--column", "--fresh"),
    "Plan": ("--plan", "--evolve"),
    "Stopping": ("--until-stable", "--half-width", "--target", "--top", "--alpha", "--max-blocks"),
    "Limits": ("--max-calls", "--concurrency", "--yes"),
    "Run": ("--store", "--workers", "--batch"),
    "Safety": (
        "--sandbox", "--unsafe-run-code-without-isolation", "--allow-host", "--allow-path",
        "--allow-env",
    ),
    "Output": ("--format", "--json", "--traceback", "-h"),
}  # fmt: skip


@click.command(cls=SectionedCommand, sections=SECTIONS)
@click.argument("task", metavar="TASK|FILE.yaml", shell_complete=complete_tasks)
@click.option(
    "-m",
    "models",
    multiple=True,
    metavar="[ALIAS=]PROVIDER/NAME",
    help="Add a contestant (repeatable).",
    shell_complete=complete_models,
)
@click.option(
    "-M",
    "model_options",
    multiple=True,
    metavar="ALIAS.KEY=VALUE",
    help="Set an option of a model, such as temperature or base_url (repeatable).",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE=[ALIAS=]PROVIDER/NAME",
    help="Add a model for an unranked role, such as judge (repeat the option for a panel).",
    shell_complete=complete_models,
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="ALIAS",
    help="Skip this model, but keep an empty row for it in the tables (repeatable).",
)
@click.option(
    "--set",
    "params",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a parameter of the task (repeatable).",
)
@click.option(
    "--evolve",
    multiple=True,
    metavar="KEY=VALUE",
    help='Configure `--plan evolve` (see the docs page "Learning from experience").',
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="ADDRESS=FILE",
    help="Replace a prompt with the contents of a file (`parley tasks NAME` lists the prompts).",
)
@click.option(
    "--dataset",
    metavar="NAME|PATH",
    help="Choose the dataset that provides the items, by name or path (`parley datasets` lists "
    "the names).",
)
@with_columns
@click.option(
    "--fresh",
    is_flag=True,
    help="Repeat the screening of questions, even if the store already has the models' answers.",
)
@run_options()
@with_workers
@without_isolation
@allow_options
@spending_options
@in_format
@as_json
def command(
    task: str,
    models: tuple[str, ...],
    model_options: tuple[str, ...],
    roles: tuple[str, ...],
    exclude: tuple[str, ...],
    params: tuple[str, ...],
    evolve: tuple[str, ...],
    prompts: tuple[str, ...],
    dataset: str | None,
    columns: tuple[str, ...],
    fresh: bool,
    workers: str | None,
    unsafe: bool,
    dry_run: bool,
    yes: bool,
    form: str,
    as_json: bool,
    **options: Any,
) -> int:
    """Run TASK (a name, or a path like ./my_game.py) and print the result.

    With FILE.yaml, run the experiment described in that file. Options override the file.

    \b
    parley run public_goods -m bot/free-rider -m bot/altruist -m bot/random
    parley run public_goods -m a=openai/gpt-4.1 -m b=vllm/Qwen/Qwen3-32B -M b.base_url=http://localhost:8000/v1
    parley run public_goods -m strong -m c=strong -M c.temperature=1     (strong is an alias in models.yaml)
    parley run experiment.yaml --seed 2
    """  # noqa: E501
    for fault in find_env_faults():
        say(fault)
    experiment = open_experiment(task, read_allowed(options))
    experiment.params |= parse_assignments(params, "--set")
    options["sandbox"] = sandbox_choice(options["sandbox"], unsafe)
    experiment.override(
        models=models or None,
        roles=parse_panels(roles),
        exclude=exclude,
        evolve=parse_assignments(evolve, "--evolve"),
        prompts=read_prompts(prompts),
        dataset=dataset,
        columns=parse_columns(columns),
        given=from_flags(**options),
    )
    set_model_options(experiment.models, model_options)
    on_workers = choose_workers(workers, experiment.store, unsafe=unsafe)
    experiment.workers = on_workers and on_workers.workers
    with show_downloads():
        prepared = experiment.prepare(need_keys=not dry_run)
    check_parts(type(prepared.task))
    if dry_run:
        load_transferred(prepared, open_store(experiment.store))  # refuses a run that is not there
        return print_forecast(prepared, as_json, form)
    if not yes:
        refuse_unwanted(prepared)
    store = open_store(experiment.store)
    play = partial(screen_and_play, prepared, store, fresh=fresh)
    if on_workers is not None:
        play = partial(play, play_new=on_workers.play_new, resume=on_workers.resume)
    played = play_and_print(play, prepared, store, as_json=as_json, form=form)
    if played.code == 0 and not as_json:
        for line in list_next_steps(played.outcome.ref, prepared.config, experiment.store):
            say(line)
    return played.code


def print_forecast(prepared: Prepared, as_json: bool, form: str) -> int:
    """Print the expected calls, tokens and cost of a run."""
    from parley.runs.forecast import compare_with_limits, encode_forecast

    for caution in prepared.cautions:
        say(caution)
    found = forecast_with_screening(prepared)
    found.notes += compare_with_limits(found, prepared.config)
    for alias in prepared.people_in_browser:
        answers = sum(row["calls"] for row in found.rows if row["alias"] == alias)
        found.notes.append(
            f"{alias} is a person in a browser: the run prints a link and waits for about "
            f"{plural(answers, 'answer')}"
        )
    click.echo(
        encode_forecast(found) if as_json else forecast_table(found).render(form, terminal_width())
    )
    return 0


def forecast_table(found: Forecast) -> Table:
    """A forecast by model and role, with totals in the last row."""
    header = ["model", "role", "calls", "tokens in", "tokens out", "usd, low", "usd, high"]
    rows = [
        [row["alias"], row["role"], f"{row['calls']:,}"]
        + ["–" if is_free(row) else f"{row[key]:,}" for key in ("tokens_in", "tokens_out")]
        + [format_number(row["usd"][end], 4) for end in ("low", "high")]
        for row in found.rows
    ]
    data = found.data
    sums = [
        *(f"{data[key]:,}" for key in ("calls", "tokens_in", "tokens_out")),
        *(format_number(found.usd[end], 4) for end in found.usd),
    ]
    calls = data["range"]["calls"]
    free = sum(row["calls"] for row in found.rows if is_free(row))
    bots = f" (about {free:,} of them to bots or people, free of charge)" if free else ""
    about = (
        f"estimate for {plural(found.matches, 'match', 'matches')}: "
        f"{format_calls(calls)}{bots}; no model was called"
    )
    return Table(header, [*rows, ["all", "", *sums]], left=2, note="\n".join([about, *found.notes]))


def format_calls(calls: Mapping[str, int]) -> str:
    """A range of calls in words; one number if both ends are the same."""
    high = plural(calls["high"], "call")
    return high if calls["low"] == calls["high"] else f"{calls['low']:,} to {high}"


def refuse_unwanted(prepared: Prepared) -> None:
    """Ask for confirmation before paid calls: only at a terminal, and only if no budget is set."""
    config, prices = prepared.config, prepared.prices
    bounded = config.budget_usd is not None or config.max_calls is not None
    if bounded or prepared.terminal_taken or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not any(
        is_billed(options, prices.of(alias)) for alias, options in config.live_models.items()
    ):
        return
    found = forecast_with_screening(prepared)
    usd, calls = found.usd, found.data["calls"]
    if usd["high"] is not None and usd["high"] <= ASK_FROM:
        return
    cost = (
        "the cost is unknown because a price is missing"
        if usd["high"] is None
        else f"the estimated cost is {format_usd(usd['low'] or 0)} to {format_usd(usd['high'])} USD"
    )
    # a budget in USD needs every price
    bound = "--max-calls" if usd["high"] is None else "--budget-usd"
    say(
        f"this run makes about {plural(calls, 'call')}; {cost}. Use --dry-run for details, "
        f"{bound} to set a limit, or --yes to skip this question"
    )
    if not click.confirm("parley: start the run?", err=True):
        say("the run was not started")
        raise click.Abort


def parse_panels(texts: Sequence[str]) -> dict[str, list[str]]:
    """The models of `--role`, by role."""
    found: dict[str, list[str]] = {}
    for text in texts:
        role, equals, model = text.partition("=")
        if not equals:
            raise UsageError(f"--role needs ROLE=[ALIAS=]PROVIDER/NAME, not {text!r}")
        found.setdefault(role, []).append(model)
    return found


def read_prompts(texts: Sequence[str]) -> dict[str, str]:
    """The prompts of `--prompt ADDRESS=FILE`."""
    files = parse_assignments(texts, "--prompt")
    return {address: read_prompt(path) for address, path in files.items()}
