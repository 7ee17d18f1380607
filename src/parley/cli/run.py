"""`parley run`: play a task, or an experiment file."""

from __future__ import annotations

import sys
from functools import partial

import click

from parley.cli.env_file import check_env
from parley.cli.playing import played
from parley.cli.progress_line import fetching, say
from parley.cli.shared_options import (
    as_json,
    assigned,
    in_format,
    in_store,
    with_options,
    within_calls,
    within_usd,
)
from parley.config.experiment import STANDARDISE, Experiment, kept_apart
from parley.config.experiment_file import from_file, is_file, words_of
from parley.config.prepare import Prepared
from parley.config.prices import billed
from parley.errors import UsageError
from parley.money import money
from parley.plans.stop_targets import TARGETS
from parley.runs import player as runs
from parley.runs.screening import foreseen, start
from parley.store.config import ISOLATING
from parley.store.sqlite import folder as stores

ASK_FROM = 1.0  # USD


@click.command()
@click.argument("task", metavar="TASK|FILE.yaml")
@click.option(
    "-m", "models", multiple=True, metavar="[ALIAS=]PROVIDER/NAME", help="A contestant; repeat it."
)
@click.option(
    "-M",
    "options",
    multiple=True,
    metavar="ALIAS.KEY=VALUE",
    help="An option of a model: temperature, base_url, …",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE=[ALIAS=]PROVIDER/NAME",
    help="An instrument; repeat it for a panel.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="ALIAS",
    help="A model that is named and does not play: its place is a dash.",
)
@click.option(
    "--set", "params", multiple=True, metavar="KEY=VALUE", help="A parameter of the task."
)
@click.option(
    "--dataset",
    metavar="NAME|PATH",
    help="The items that the task is played on (see `parley datasets`).",
)
@click.option("--items", type=click.IntRange(1), help="How many of the items.")
@click.option(
    "--plan",
    help="round_robin, cycles, race, together, each or versus (default: what fits the task).",
)
@click.option(
    "--adversary",
    metavar="[ALIAS=]PROVIDER/NAME",
    help="Whom every model meets, and who is not ranked (versus).",
)
@click.option(
    "--seats",
    type=click.IntRange(1),
    help="Seats at a table whose size the task leaves open (cycles, race, round_robin).",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    help="How often everything is played (default: the task's own).",
)
@click.option(
    "--until-stable",
    is_flag=True,
    default=None,
    help="Play until every result's interval is narrow enough.",
)
@click.option(
    "--half-width",
    type=float,
    help="How narrow, or how close a race decides (default: what the task declares).",
)
@click.option("--alpha", type=float, help="The chance that any of it is wrong (default: 0.05).")
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    help="What the results are about (default: these_items, where there are items).",
)
@click.option("--top", type=click.IntRange(1), help="Race for the first K only.")
@click.option(
    "--max-blocks",
    type=click.IntRange(1),
    help="The most blocks to play (default: all items, else 1000).",
)
@within_usd
@within_calls
@click.option(
    "--dry-run", is_flag=True, help="Say what calls, tokens and money to expect, and call nothing."
)
@click.option("--yes", is_flag=True, help="Ask no question before spending.")
@click.option("--seed", type=int, help="Where all chance comes from (default: 0).")
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="ADDRESS=FILE",
    help="Replace a prompt (see `parley tasks NAME`).",
)
@click.option(
    "--standardise",
    type=click.Choice(STANDARDISE),
    help="When a reply is put into form (default: on_error).",
)
@click.option(
    "--sandbox",
    type=click.Choice(ISOLATING),
    help="How code that models write is kept apart (default: bubblewrap).",
)
@click.option(
    "--unsafe-run-code-without-isolation",
    "unsafe",
    is_flag=True,
    help="Run what models write on this machine as it is; the run and its report say so.",
)
@click.option("--name", help="A name of your own for the run.")
@in_store
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    help=f"Matches in flight (default: {runs.CONCURRENCY}).",
)
@in_format
@as_json
def command(
    task: str,
    models: tuple[str, ...],
    options: tuple[str, ...],
    roles: tuple[str, ...],
    exclude: tuple[str, ...],
    params: tuple[str, ...],
    dataset: str | None,
    items: int | None,
    plan: str | None,
    adversary: str | None,
    seats: int | None,
    repeats: int | None,
    until_stable: bool | None,
    half_width: float | None,
    alpha: float | None,
    target: str | None,
    top: int | None,
    max_blocks: int | None,
    budget_usd: float | None,
    max_calls: int | None,
    dry_run: bool,
    yes: bool,
    seed: int | None,
    prompts: tuple[str, ...],
    standardise: str | None,
    sandbox: str | None,
    unsafe: bool,
    name: str | None,
    store: str | None,
    concurrency: int | None,
    form: str,
    as_json: bool,
) -> int:
    """Play TASK (a name, or a path like ./my_game.py) and print the result; or what FILE.yaml says,
    which flags override.

    \b
    parley run public_goods -m bot/free-rider -m bot/altruist -m bot/random
    parley run public_goods -m a=openai/gpt-4.1 -m b=vllm/Qwen/Qwen3-32B -M b.base_url=http://localhost:8000/v1
    parley run public_goods -m strong -m c=strong -M c.temperature=1     (strong is an alias in models.yaml)
    parley run experiment.yaml --seed 2
    """  # noqa: E501
    check_env()
    experiment = from_file(task) if is_file(task) else Experiment(task)
    experiment.params |= assigned(params, "--set")
    if models:
        experiment.contestants = [experiment.enter(text) for text in models]
    experiment.instruments |= panels(experiment, roles)
    experiment.override(adversary=experiment.enter(adversary) if adversary else None)
    experiment.exclude += exclude
    with_options(experiment.models, options)
    experiment.prompts |= {
        address: words_of(path) for address, path in assigned(prompts, "--prompt").items()
    }
    experiment.draw_from(dataset)
    experiment.override(items=items, plan=plan, repeats=repeats, seed=seed, standardise=standardise)
    experiment.override(
        until_stable=until_stable, half_width=half_width, alpha=alpha, target=target, top=top
    )
    experiment.override(
        seats=seats, max_blocks=max_blocks, budget_usd=budget_usd, max_calls=max_calls
    )
    experiment.override(
        name=name, store=store, concurrency=concurrency, sandbox=kept_apart(sandbox, unsafe)
    )
    with fetching():
        prepared = experiment.prepared(keyless=dry_run)
    if dry_run:
        return forecasted(prepared, as_json, form)
    if not yes:
        refuse_unwanted(prepared)
    play = partial(start, prepared, stores.folder(experiment.store))
    return played(play, as_json=as_json, form=form, quiet=prepared.attended)


def forecasted(prepared: Prepared, as_json: bool, form: str) -> int:
    """Print what the run would take."""
    from parley.runs.forecast import compared_with, encoded

    for caution in prepared.cautions:
        say(caution)
    found = foreseen(prepared)
    found.notes += compared_with(found, prepared.config)
    click.echo(encoded(found) if as_json else found.table().render(form))
    return 0


def refuse_unwanted(prepared: Prepared) -> None:
    """Ask before much is spent: only at a terminal, only where somebody will send a bill that has
    no bound."""
    config, prices = prepared.config, prepared.prices
    bounded = config.budget_usd is not None or config.max_calls is not None
    if bounded or prepared.attended or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not any(billed(options, prices.of(alias)) for alias, options in config.asked.items()):
        return
    found = foreseen(prepared)
    usd, calls = found.usd, found.data["calls"]
    if usd["high"] is not None and usd["high"] <= ASK_FROM:
        return
    cost = (
        "a price is not known"
        if usd["high"] is None
        else f"{money(usd['low'] or 0)} to {money(usd['high'])} USD"
    )
    # a bound in USD wants to know every price
    bound = "--max-calls" if usd["high"] is None else "--budget-usd"
    say(
        f"about {calls:,} calls are expected; {cost} (--dry-run shows more, {bound} bounds it, "
        f"--yes asks nothing)"
    )
    if not click.confirm("parley: play?", err=True):
        say("nothing was played")
        raise click.Abort


def panels(experiment: Experiment, texts: tuple[str, ...]) -> dict[str, list[str]]:
    """The instruments of `--role`, by role."""
    found: dict[str, list[str]] = {}
    for text in texts:
        role, equals, model = text.partition("=")
        if not equals:
            raise UsageError(f"--role wants ROLE=[ALIAS=]PROVIDER/NAME, got {text!r}")
        found.setdefault(role, []).append(experiment.enter(model))
    return found
