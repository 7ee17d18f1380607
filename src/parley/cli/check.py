"""`parley check`: the conformance suite, run on your own task."""

from __future__ import annotations

import click
import orjson

from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, parse_assignments, parse_columns, with_columns
from parley.cli.shell_completion import complete_tasks
from parley.config.task_catalogue import task_class
from parley.datasets.catalogue import load_items
from parley.datasets.item_rows import item_type_of_task
from parley.tables import Table
from parley.testing.conformance import CHECKS, check_task


@click.command()
@click.argument("task", metavar="TASK|FILE", shell_complete=complete_tasks)
@click.option(
    "--set",
    "params",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a parameter of the task (repeatable).",
)
@click.option("--dataset", metavar="NAME|PATH", help="Choose the dataset that the check uses.")
@with_columns
@as_json
def command(
    task: str,
    params: tuple[str, ...],
    dataset: str | None,
    columns: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check a task that you have written (./my_game.py, ./my_task.yaml or a name).

    Parley plays many matches, with both valid and nonsense replies. It tests that each match can
    be resumed from any point. No model is called. The check stops at the first failure with exit
    code 1.
    """
    kind = task_class(task)
    made = kind.from_params(parse_assignments(params, "--set"))
    items = load_items(dataset, item_type_of_task(kind), parse_columns(columns)) if dataset else ()
    done = check_task(made, items=items)
    if as_json:
        click.echo(orjson.dumps({"task": made.name, "checks": done}).decode())
        return
    rows = [[CHECKS[name], str(count)] for name, count in done.items()]
    click.echo(Table(["check", "matches or tables"], rows).render())
    say(f"{made.name} passed all checks")
