"""`parley demo`: a first result without any key."""

from __future__ import annotations

from functools import partial

import click

from parley import runs
from parley import store as stores
from parley.cli.options import as_json, in_store
from parley.cli.playing import played
from parley.cli.progress import say
from parley.experiment import Experiment
from parley.tasks.public_goods import PublicGoods

PLAYERS = ("free-rider", "reciprocator", "gradual", "random", "altruist")


@click.command()
@in_store
@as_json
def command(store: str | None, as_json: bool) -> int:
    """Five bots play the public goods game ten times; the table shows what each strategy earns."""
    task = PublicGoods()
    say(f"public goods game: {', '.join(PLAYERS)} play {task.rounds} rounds, {task.repeats} times")
    asked = Experiment(task.name, models={name: {"model": f"bot/{name}"} for name in PLAYERS}, name="demo")
    play = partial(runs.start, asked.prepared(), stores.folder(store))
    code = played(play, as_json=as_json, form="text", concurrency=runs.CONCURRENCY)
    say("see a match as each seat saw it: parley show last 1; check that it was fair: parley audit last")
    return code
