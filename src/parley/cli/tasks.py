"""`parley tasks`: list tasks, or describe one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, fields
from inspect import signature
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
import orjson

from parley.cli.progress_line import say
from parley.cli.shared_options import as_json
from parley.cli.shell_completion import complete_tasks
from parley.config import task_catalogue
from parley.config.prompt_overrides import unused_prompts
from parley.results.part import parts_of_task
from parley.rules.task import Task


@click.command()
@click.argument("name", required=False, shell_complete=complete_tasks)
@as_json
def command(name: str | None, as_json: bool) -> None:
    """List the tasks, or with NAME (or a path) the roles, parameters, metrics, prompts and bots of
    one."""
    if name is None:
        tasks, faults = task_catalogue.installed_tasks()
        for fault in faults:
            say(fault)
        found = {each: task_catalogue.summarise_task(task) for each, task in tasks.items()}
        if as_json:
            click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        else:
            for each, line in found.items():
                click.echo(f"{each:<20} {line}")
        return
    task = task_catalogue.task_class(name)
    facts = describe_task(task)
    if as_json:
        click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
        return
    click.echo(f"{task.name} (version {task.version}): {task_catalogue.summarise_task(task)}\n")
    for line in format_task(facts):
        click.echo(line)


def format_task(facts: Mapping[str, Any]) -> Iterator[str]:
    """The description of a task, line by line."""
    for name, role in facts["roles"].items():
        seats = "1 seat" if role["seats"] == "1" else f"{role['seats']} seats"
        yield (
            f"role {name}: {seats}"
            + ", unranked" * role["instrument"]
            + ", optional" * role["optional"]
        )
    for name, param in facts["params"].items():
        usual = (
            ",".join(map(str, param["default"]))
            if isinstance(param["default"], tuple)
            else param["default"]
        )
        default = f"default {usual}" if usual is not None else "no default"
        yield f"--set {name}=…  ({param['type']}, {default})" + (
            f": {param['meaning']}" if param["meaning"] else ""
        )
    for metric in facts["metrics"]:
        unit, whose = (
            f" {metric['unit']}" if metric["unit"] else "",
            " and ".join(metric["roles"]) or "every contestant",
        )
        yield (
            f"metric {metric['name']} of {whose}: {metric['low']:g} to "
            f"{metric['high']:g}{unit}, {metric['better']} is better, target half-width "
            f"{metric['epsilon']:g}" + ", scored by judges" * metric["judged"]
        )
    for name, about in facts["bots"].items():
        options = ", ".join(
            f"{option}={usual}" for option, usual in facts["bot_options"][name].items()
        )
        yield f"{name}: {about}" + (
            f" (-M ALIAS.{options.replace(', ', ', -M ALIAS.')})" if options else ""
        )
    for address, text in facts["texts"].items():
        yield (f"\nprompt {address}{' (not used by default)' * (address in facts['unsaid'])}:")
        yield "  " + text.replace("\n", "\n  ")
        for name in facts["prompts"][address]:
            yield f"    {{{name}}}" + (
                f": {facts['meanings'][name]}" if facts["meanings"][name] else ""
            )
    for name, title in facts["parts"].items():
        yield f"part {name}: {title} (parley show RUN --part {name})"


def format_type(hint: Any) -> str:
    """The type of a parameter, in words."""
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    if get_origin(hint) in (tuple, list):
        return f"{format_type(get_args(hint)[0])}, or several separated by commas"
    return str(getattr(hint, "__name__", hint))


def count_least_seats(task: type[Task]) -> dict[str, int]:
    """The smallest number of seats with every role filled."""
    return {name: max(1, role.min_seats) for name, role in task.roles.items()}


def describe_task(task: type[Task]) -> dict[str, Any]:
    """A task as JSON data."""
    hints, prompts, meanings = get_type_hints(task), task.prompts(), parameter_meanings(task)
    params = {
        each.name: {
            "type": format_type(hints[each.name]),
            "default": None if each.default is MISSING else each.default,
            "meaning": meanings.get(each.name, ""),
        }
        for each in fields(task)  # type: ignore[arg-type]
    }
    try:
        usual = task.from_params({})
        metrics = [asdict(metric) for metric in usual.metrics(count_least_seats(task))]
        unsaid = unused_prompts(
            usual, {name: role.min_seats for name, role in task.roles.items()}, "on_error"
        )
    # a parameter without a default: ranges are known only once it is set
    except Exception:
        metrics, unsaid = [], frozenset[str]()
    return {
        "roles": {
            name: {
                "seats": role.size_text,
                "instrument": role.instrument,
                "optional": role.min_seats == 0,
            }
            for name, role in task.roles.items()
        },
        "params": params,
        "metrics": metrics,
        "prompts": {f"{task.name}.{name}": prompt.variables for name, prompt in prompts.items()},
        "meanings": {
            name: meanings.get(name, "")
            for name in sorted({each for p in prompts.values() for each in p.variables})
        },
        "texts": {f"{task.name}.{name}": prompt.text for name, prompt in prompts.items()},
        "unsaid": [f"{task.name}.{name}" for name in prompts if name in unsaid],
        "parts": {part.name: part.title for part in parts_of_task(task)},
        "bots": {f"bot/{name}": (bot.__doc__ or "").strip() for name, bot in task.bots.items()},
        "bot_options": {f"bot/{name}": bot_options(bot) for name, bot in task.bots.items()},
    }


def parameter_meanings(task: type[Task]) -> dict[str, str]:
    """What parameters and prompt variables mean: from the task, or a field of its items."""
    items = [] if task.items is None else [each.name for each in fields(task.items.type)]
    return {**{name: f"the item's {name}" for name in items}, **task.meanings()}


def bot_options(bot: Callable[..., Any]) -> dict[str, Any]:
    """A bot's options with their defaults: its parameters after the view."""
    return {
        name: each.default
        for name, each in list(signature(bot).parameters.items())[1:]
        if each.default is not each.empty
    }
