"""`parley tasks`: what can be played."""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from typing import Any, get_type_hints

import click
import orjson

from parley import catalogue
from parley.cli.options import as_json
from parley.errors import ParleyError
from parley.task import Task


@click.command()
@click.argument("name", required=False)
@as_json
def command(name: str | None, as_json: bool) -> None:
    """List the tasks; with NAME (or a path), show roles, parameters, metrics, prompts and bots."""
    if name is None:
        found = {each: summary(catalogue.task_class(each)) for each in catalogue.names()}
        if as_json:
            click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        else:
            for each, line in found.items():
                click.echo(f"{each:<20} {line}")
        return
    task = catalogue.task_class(name)
    facts = described(task)
    if as_json:
        click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
        return
    click.echo(f"{task.name} (version {task.version}): {summary(task)}\n")
    for title, rows in facts.items():
        click.echo(f"{title}:")
        for key, value in rows.items() if isinstance(rows, dict) else ((row["name"], row) for row in rows):
            shown = (
                ", ".join(f"{k} {v}" for k, v in value.items() if v not in (None, "", (), []))
                if isinstance(value, dict)
                else value
            )
            click.echo(f"  {key:<28} {', '.join(shown) if isinstance(shown, list) else shown}")
        click.echo()


def summary(task: type[Task]) -> str:
    lines = (task.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""


def described(task: type[Task]) -> dict[str, Any]:
    """A task in plain data."""
    hints = get_type_hints(task)
    params = {
        each.name: {
            "type": getattr(hints[each.name], "__name__", str(hints[each.name]).replace("typing.", "")),
            "default": None if each.default is MISSING else each.default,
        }
        for each in fields(task)  # type: ignore[arg-type]
    }
    seats = {name: max(1, role.least) for name, role in task.roles.items()}
    try:
        metrics = [asdict(metric) for metric in task.configured({}).metrics(seats)]
    except ParleyError:  # a parameter without a default: ranges are known once it is set
        metrics = []
    return {
        "roles": {
            name: {"seats": f"{role.least} to {role.largest}" if role.open else str(role.least), "instrument": role.instrument}
            for name, role in task.roles.items()
        },
        "params": params,
        "metrics": metrics,
        "prompts": {f"{task.name}.{name}": prompt.variables for name, prompt in task.prompts().items()},
        "bots": {f"bot/{name}": (bot.__doc__ or "").strip() for name, bot in task.bots.items()},
    }
