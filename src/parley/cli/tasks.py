"""`parley tasks`: what can be played."""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
import orjson

from parley import catalogue
from parley.cli.options import as_json
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
    for name, role in facts["roles"].items():
        click.echo(f"role {name}: {role['seats']} seats" + (", an instrument" if role["instrument"] else ""))
    for name, param in facts["params"].items():
        usual = ",".join(map(str, param["default"])) if isinstance(param["default"], tuple) else param["default"]
        default = f"default {usual}" if usual is not None else "no default"
        click.echo(f"--set {name}=…  ({param['type']}, {default})")
    for metric in facts["metrics"]:
        unit, seats = f" {metric['unit']}" if metric["unit"] else "", ", ".join(f"{n} {r}" for r, n in least_seats(task).items())
        click.echo(
            f"metric {metric['name']}: {metric['low']:g} to {metric['high']:g}{unit}, {metric['better']} is better, "
            f"a half-width of {metric['epsilon']:g} matters ({seats})"
        )
    for name, about in facts["bots"].items():
        click.echo(f"{name}: {about}")
    for address, text in facts["texts"].items():
        click.echo(f"\nprompt {address}:\n  " + text.replace("\n", "\n  "))


def kind_of(hint: Any) -> str:
    """A parameter's type as people say it."""
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    if get_origin(hint) in (tuple, list):
        return f"{kind_of(get_args(hint)[0])}, several with commas between"
    return str(getattr(hint, "__name__", hint))


def summary(task: type[Task]) -> str:
    """What a task is, in its own first line."""
    lines = (task.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""


def least_seats(task: type[Task]) -> dict[str, int]:
    """The smallest table that a task can be played at."""
    return {name: max(1, role.least) for name, role in task.roles.items()}


def described(task: type[Task]) -> dict[str, Any]:
    """A task in plain data."""
    hints = get_type_hints(task)
    params = {
        each.name: {
            "type": kind_of(hints[each.name]),
            "default": None if each.default is MISSING else each.default,
        }
        for each in fields(task)  # type: ignore[arg-type]
    }
    try:
        metrics = [asdict(metric) for metric in task.configured({}).metrics(least_seats(task))]
    except Exception:  # a parameter without a default: ranges are known once it is set; the rest shows when it is played
        metrics = []
    return {
        "roles": {
            name: {"seats": f"{role.least} to {role.largest}" if role.open else str(role.least), "instrument": role.instrument}
            for name, role in task.roles.items()
        },
        "params": params,
        "metrics": metrics,
        "prompts": {f"{task.name}.{name}": prompt.variables for name, prompt in task.prompts().items()},
        "texts": {f"{task.name}.{name}": prompt.text for name, prompt in task.prompts().items()},
        "bots": {f"bot/{name}": (bot.__doc__ or "").strip() for name, bot in task.bots.items()},
    }
