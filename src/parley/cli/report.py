"""`parley report`: runs beside each other, as tables or as one page."""

from __future__ import annotations

import click

from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, in_store, parse_assignments, with_task
from parley.cli.shell_completion import complete_runs
from parley.config.task_catalogue import task_class
from parley.report.build import build_report, write_report
from parley.report.sections import ReportOptions
from parley.store import open_store
from parley.tables import FORMATS, terminal_width


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", shell_complete=complete_runs)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write one self-contained page (or what --format says) to this file.",
)
@click.option(
    "--scores",
    metavar="FILE.csv",
    help="Further columns by model, and figures that no run has measured.",
)
@click.option(
    "--reference",
    multiple=True,
    metavar="ALIAS",
    help="A model that is trusted: the line is fitted to these.",
)
@click.option(
    "--without", multiple=True, metavar="ALIAS", help="Give correlations without this model, too."
)
@click.option(
    "--control",
    "controls",
    multiple=True,
    metavar="SUSPECT=CONTROL",
    help="A model of the suspect's base to match it.",
)
@click.option(
    "--newest", is_flag=True, help="Of runs that measure one model otherwise, take the newest."
)
@with_task
@in_store
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="The form (default: text; html into a file).",
)
@as_json
def command(
    runs: tuple[str, ...],
    output: str | None,
    scores: str | None,
    reference: tuple[str, ...],
    without: tuple[str, ...],
    controls: tuple[str, ...],
    newest: bool,
    task: str | None,
    store: str | None,
    form: str | None,
    as_json: bool,
) -> None:
    """Show RUN… (ids, their beginnings, names or paths) beside each other.

    \b
    parley report last -o report.html
    parley report k1 k2 q1 q2 --scores others.csv --reference base --control tuned=base
    """
    place = open_store(store)
    refs = [place.find(run) for run in runs]
    options = ReportOptions(
        scores,
        reference,
        without,
        parse_assignments(controls, "--control"),
        newest,
    )
    text = build_report(refs, options, task_class(task) if task else None).render(
        "json" if as_json else form or ("html" if output else "text"),
        None if output else terminal_width(),
    )
    if output is None:
        click.echo(text)
        return
    say(f"written to {write_report(output, text)}")
