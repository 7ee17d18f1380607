"""`parley demo`: a first result without an API key."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import click

from parley import downloads
from parley.api import Result
from parley.cli.invocation import command_name
from parley.cli.next_steps import list_next_steps
from parley.cli.playing import play_and_print
from parley.cli.progress_line import say, show_downloads
from parley.cli.shared_options import as_json, in_store
from parley.config.experiment import Experiment
from parley.config.task_catalogue import task_class
from parley.errors import ParleyError
from parley.options import from_keywords
from parley.providers import _registry as providers
from parley.providers.embedded import SMOLLM2
from parley.results.match_list import MatchFilter, list_matches
from parley.runs import start
from parley.runs.new_names import find_free_name, names_in
from parley.store import open_store, read_run
from parley.store.types import RunRef

MODEL = {"model": "embedded/smollm2", "max_tokens": 96}
BOTS = ("free-rider", "reciprocator", "gradual", "random", "altruist")
SEATS, ROUNDS = 5, 5
AT_ONCE = 4  # matches at a time, as many as the model can answer


@click.command()
@click.option(
    "--bots-only",
    is_flag=True,
    help="Play with bots only, without the small language model; this takes about a second.",
)
@in_store
@as_json
def command(bots_only: bool, store: str | None, as_json: bool) -> int:
    """Play the public goods game ten times with bots and a small language model on this machine.

    The demo writes a report and prints its path. The model is downloaded once (93 MB). The demo
    takes a minute or two on two cores, a few minutes on a busy machine. The model has 135 million
    parameters: its score only shows that everything works. It says nothing about larger models.
    """
    task = task_class("public_goods").from_params({"rounds": ROUNDS})
    models: dict[str, dict[str, Any]] = (
        {} if bots_only or not has_local_model() else {"smollm2": dict(MODEL)}
    )
    models |= {name: {"model": f"bot/{name}"} for name in BOTS[: SEATS - len(models)]}
    say(
        f"playing the public goods game with {', '.join(models)}: {task.repeats} games of "
        f"{ROUNDS} rounds"
    )
    if "smollm2" in models:
        say("smollm2 is a tiny model: its score only shows that everything works")
    place = open_store(store)
    name = find_free_name("demo", names_in(place))
    given = from_keywords(name=name, concurrency=AT_ONCE)
    prepared = Experiment(task.name, models=models, given=given).prepare()
    play = partial(start.play_new_run, prepared, place)
    played = play_and_print(play, prepared, place, as_json=as_json, form="text")
    if played.code == 0:
        ref = played.outcome.ref
        steps = list_next_steps(ref, prepared.config, store, has_page=True)
        for line in [*steps, *list_steps_of_demo(ref, store)]:
            say(line)
        say(f"report with all results, open it in a browser: {write_page(ref)}")
    return played.code


def list_steps_of_demo(ref: RunRef, store: str | None) -> list[str]:
    """More commands to try after the demo."""
    run = "last" if store is None else shlex.quote(ref.location)
    with read_run(ref) as reader:
        worst = list_matches(reader, MatchFilter(worst=1))
    me = command_name()
    lines = [f"check that the run was fair: {me} audit {run}"]
    if worst and (loser := worst[0].focus):
        number, score = worst[0].row.number, loser.score_text
        lines.append(
            f"see why {loser.alias} scored only {score} in match {number}: {me} show {run} {number}"
        )
    return lines


def write_page(ref: RunRef) -> Path:
    """Write the report of the demo beside its run, or here if the run is in a database."""
    result = Result(ref, task=task_class("public_goods"))
    page = Path(f"{ref.id}.html") if ref.path is None else ref.path.with_suffix(".html")
    return result.report(page.absolute())


def has_local_model() -> bool:
    """Whether the language model can play; prints the reason if not."""
    family, _, name = str(MODEL["model"]).partition("/")
    try:
        providers.make_provider(family, name, {})
        with show_downloads():
            downloads.obtain_file(SMOLLM2)
    except ParleyError as wrong:
        say(f"the language model cannot play: {wrong}")
        say("the demo continues with bots only")
        return False
    return True
