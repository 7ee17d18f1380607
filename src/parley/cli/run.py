"""`parley run`: play a task."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from parley import runs, store
from parley.catalogue import task_class
from parley.cli.options import as_json, assigned, at_once, in_format, in_store, with_options
from parley.cli.playing import played
from parley.config import Config
from parley.errors import UsageError
from parley.participants import named
from parley.plan.fixed import usual


@click.command()
@click.argument("task")
@click.option("-m", "models", multiple=True, metavar="[ALIAS=]PROVIDER/NAME", help="A contestant; repeat it.")
@click.option("-M", "options", multiple=True, metavar="ALIAS.KEY=VALUE", help="An option of a model: temperature, base_url, …")
@click.option(
    "--role", "roles", multiple=True, metavar="ROLE=[ALIAS=]PROVIDER/NAME", help="An instrument; repeat it for a panel."
)
@click.option("--set", "params", multiple=True, metavar="KEY=VALUE", help="A parameter of the task.")
@click.option("--dataset", metavar="PATH", help="The items that the task is played on.")
@click.option("--items", type=click.IntRange(1), help="How many of the items.")
@click.option("--plan", help="round_robin, together or each (default: what fits the task).")
@click.option("--repeats", type=click.IntRange(1), help="How often everything is played (default: the task's own).")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--prompt", "prompts", multiple=True, metavar="ADDRESS=FILE", help="Replace a prompt (see `parley tasks NAME`).")
@click.option("--standardise", type=click.Choice(["on_error", "always"]), default="on_error", show_default=True)
@click.option("--name", default="", help="A name of your own for the run.")
@in_store
@at_once
@in_format
@as_json
def command(
    task: str,
    models: tuple[str, ...],
    options: tuple[str, ...],
    roles: tuple[str, ...],
    params: tuple[str, ...],
    dataset: str | None,
    items: int | None,
    plan: str | None,
    repeats: int | None,
    seed: int,
    prompts: tuple[str, ...],
    standardise: str,
    name: str,
    store: str | None,
    concurrency: int,
    form: str,
    as_json: bool,
) -> int:
    """Play TASK (a name, or a path like ./my_game.py) and print the result.

    \b
    parley run public_goods -m bot/free-rider -m bot/altruist -m bot/random
    parley run public_goods -m a=openai/gpt-4.1 -m b=vllm/Qwen/Qwen3-32B -M b.base_url=http://localhost:8000/v1
    """
    made = task_class(task).configured(assigned(params, "--set"))
    table: dict[str, dict[str, object]] = {}
    contestants = [entered(text, table) for text in models]
    instruments: dict[str, list[str]] = {}
    for text in roles:
        role, equals, model = text.partition("=")
        if not equals:
            raise UsageError(f"--role wants ROLE=[ALIAS=]PROVIDER/NAME, got {text!r}")
        instruments.setdefault(role, []).append(entered(model, table, shared=True))
    with_options(table, options)
    config = Config(
        task=task,
        params=made.params,
        models=table,
        contestants=contestants,
        instruments=instruments,
        plan=plan or usual(made),
        repeats=made.repeats if repeats is None else repeats,
        seed=seed,
        standardise="always" if standardise == "always" else "on_error",
        prompts={address: words_of(path) for address, path in assigned(prompts, "--prompt").items()},
        dataset=dataset,
        items=items,
        name=name,
    )
    prepared = runs.prepare(config)
    place = store_folder(store)
    quiet = any(str(options["model"]).startswith("human/") for options in table.values())
    return played(partial(runs.start, prepared, place), as_json=as_json, form=form, concurrency=concurrency, quiet=quiet)


def store_folder(given: str | None) -> Path:
    return store.folder(given)


def entered(text: str, table: dict[str, dict[str, object]], shared: bool = False) -> str:
    """Put a model into the table; its alias. A judge may be a model that is there already."""
    alias, model = named(text)
    if alias in table and not (shared and table[alias]["model"] == model):
        raise UsageError(f"two models are called {alias!r}: give each an alias, -m a={model} -m b={model}")
    table.setdefault(alias, {"model": model})
    return alias


def words_of(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip("\n")
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"prompt file {path} cannot be read: {wrong}") from None
