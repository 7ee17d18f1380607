"""`parley datasets`: list datasets, and check one."""

from __future__ import annotations

from typing import Any

import click
import orjson

from parley.cli.progress_line import say, show_downloads, show_status
from parley.cli.shared_options import as_json, parse_columns, with_columns
from parley.config.task_catalogue import task_class
from parley.datasets import Dataset
from parley.datasets.catalogue import (
    all_datasets,
    describe_reading,
    item_type_of_dataset,
    load_items,
)
from parley.datasets.item_rows import item_type_of_task
from parley.tables import Table, format_item_count, terminal_width

FAILED = 5


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the named datasets with the number of items, source and licence."""
    if context.invoked_subcommand is not None:
        return
    there = all_datasets()
    if as_json:
        click.echo(
            orjson.dumps(
                [describe_dataset(each) for each in there], option=orjson.OPT_INDENT_2
            ).decode()
        )
        return
    rows = [
        [each.name, each.source, each.licence, str(each.count), each.item_type.__name__]
        for each in there
    ]
    click.echo(
        Table(["name", "from", "licence", "items", "of type"], rows, left=3).render(
            width=terminal_width()
        )
    )


@command.command("check")
@click.argument("dataset", metavar="NAME|PATH")
@click.option(
    "--task",
    help="Read the dataset as items of this task (default: detected from the dataset's name or "
    "columns).",
)
@with_columns
@as_json
def check_dataset(dataset: str, task: str | None, columns: tuple[str, ...], as_json: bool) -> int:
    """Read a whole dataset and check every item; exit with 5 if an item fails.

    If a row cannot be read, the error names it. For programming problems, the
    reference solution runs in the sandbox and must pass its own tests. For command-line tasks, the
    example solution must pass, and doing nothing must fail. For questions, no two questions and no
    two choices of a question may be the same.
    """
    named = parse_columns(columns)
    with show_downloads():
        kind = (
            item_type_of_dataset(dataset, named)
            if task is None
            else item_type_of_task(task_class(task))
        )
        items = load_items(dataset, kind, named)
        for odd in describe_reading(dataset, kind, named, unread=True):
            say(odd)
    found = check_items(kind, items)
    if as_json:
        facts = {"dataset": dataset, "item_type": kind.__name__, "items": len(items), **found}
        click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
    else:
        for fault in found["failed"]:
            click.echo(f"{fault['id']}: {fault['fault']}")
        for remark in found["remarks"]:
            click.echo(remark)
        came = (
            f"{found['checked']} checked, {len(found['failed'])} failed"
            if found["checked"]
            else "only the format of the items was checked"
        )
        click.echo(
            f"{dataset}: read {format_item_count(len(items))} of type {kind.__name__}; {came}"
        )
    return FAILED if found["failed"] else 0


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """A dataset as JSON data."""
    facts = {"name": dataset.name, "item_type": dataset.item_type.__name__, "items": dataset.count}
    return {**facts, "from": dataset.source, "licence": dataset.licence}


def check_items(kind: type, items: list[Any]) -> dict[str, Any]:
    """How many items could be checked beyond their format, and which of them failed."""
    from parley.datasets.checks import CHECKS
    from parley.runs.event_loop import run_sync

    if kind not in CHECKS:
        return {"checked": 0, "failed": [], "remarks": []}
    look = CHECKS[kind]
    with show_status() as tell:
        found = run_sync(look(items, lambda done: tell(f"{done} of {len(items)} checked")))
        tell("")
    failed = [{"id": item, "fault": fault} for item, fault in found.faults.items()]
    return {"checked": found.checked, "failed": failed, "remarks": list(found.remarks)}
