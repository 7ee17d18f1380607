"""`parley ls`: the runs in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import orjson

from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, in_store
from parley.config.prices import PriceList
from parley.errors import StoreError
from parley.money import cost_rows, prices_of, total_cost
from parley.results.run_facts import collect_run_facts, describe_workers
from parley.results.types import RunWorkers
from parley.results.types import as_json as plain
from parley.store import open_store
from parley.store.types import NOBODY, UnreadableRun
from parley.tables import Table, shorten


@click.command()
@in_store
@as_json
def command(store: str | None, as_json: bool) -> None:
    """List the runs in the store, newest first, with their cost (≥ if some prices are unknown)."""
    found, look_up = [], PriceList().find
    place = open_store(store)
    for run in place.runs():
        try:
            if isinstance(run, UnreadableRun):
                raise StoreError(run.reason)
            with place.read(run.ref) as reader:
                cost = total_cost(cost_rows(reader, prices_of(reader, look_up)))
                run_facts = collect_run_facts(reader)
                facts, workers = plain(run_facts), run_facts.workers
        except StoreError as wrong:
            say(str(wrong))
            continue
        except Exception as wrong:  # one bad file must not hide the others
            fault = f"{type(wrong).__name__}: {shorten(str(wrong))}"
            say(f"{run.ref.location} cannot be listed: {fault}")
            continue
        facts["cost"] = {"calls": cost.calls, "usd": cost.usd, "usd_at_least": cost.at_least}
        found.append((facts, list(run.config.contestants), cost, workers))
    if not found:
        say(f"no runs in {place.name}")
    found.sort(key=lambda each: str(each[0]["created"]), reverse=True)
    if as_json:
        click.echo(
            orjson.dumps([facts for facts, *_ in found], option=orjson.OPT_INDENT_2).decode()
        )
        return
    rows = [
        [
            facts["id"],
            shorten(facts["name"] or ""),
            facts["task"],
            ", ".join(models),
            describe_listed_state(facts, workers),
            f"{facts['matches']['done']}/{facts['matches']['planned']}",
            str(cost.calls),
            str(cost),
        ]
        for facts, models, cost, workers in found
    ]
    click.echo(
        Table(
            ["run", "name", "task", "models", "state", "matches", "calls", "usd"], rows, left=5
        ).render()
    )


def describe_listed_state(facts: Mapping[str, Any], workers: RunWorkers | None) -> str:
    """The state of a run, with its workers if it is not over."""
    words = [facts["state"]]
    workers = workers or RunWorkers(0, 0, 0)
    if workers.alive or facts["stop"]["reason"] == NOBODY:
        words.append(describe_workers(workers))
    if facts["sandbox"] == "none":
        words.append("UNSAFE")
    return ", ".join(words)
