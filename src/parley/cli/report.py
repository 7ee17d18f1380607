"""`parley report`: compare runs in tables or on an HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from parley.audit.for_report import MOST_CALLS, audit_for_report
from parley.audit.summary import AuditSummary
from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, in_store, parse_assignments, with_task
from parley.cli.shell_completion import complete_runs
from parley.config.task_catalogue import task_class
from parley.errors import UsageError
from parley.report.build import Report, build_report, write_report
from parley.report.html import make_cleaner
from parley.report.named_figures import FIGURE_ENDINGS, choose_figure, write_figure
from parley.report.page_options import PageOptions
from parley.results.compared_runs import ComparisonOptions
from parley.store import open_store
from parley.store.types import RunRef
from parley.tables import FORMATS, terminal_width

FORM_OF_ENDING = {
    ".txt": "text",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
}  # of the files that -o names; others are HTML pages


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", shell_complete=complete_runs)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the report to this file, as one self-contained HTML page, unless it ends with "
    ".txt, .md, .tex, .csv or .json.",
)
@click.option(
    "--scores",
    metavar="FILE.csv",
    help="Read more numbers about the models from a CSV file: extra columns for the tables, or "
    "accuracies that no run has measured.",
)
@click.option(
    "--reference",
    multiple=True,
    metavar="ALIAS",
    help="Use this model, which you know to be uncontaminated, to fit the contamination line "
    "(repeatable).",
)
@click.option(
    "--without",
    multiple=True,
    metavar="ALIAS",
    help="Add the same correlations, computed without this model (repeatable).",
)
@click.option(
    "--control",
    "controls",
    multiple=True,
    metavar="SUSPECT=CONTROL",
    help="Compare a model suspected of contamination with a control that was trained from the "
    "same base model (repeatable).",
)
@click.option(
    "--newest",
    is_flag=True,
    help="Use the newest run if several runs have different values for the same model.",
)
@click.option(
    "--figure",
    metavar="NAME",
    help="Write one figure of the report to an SVG or PNG file (-o FILE.svg, -o FILE.png), with a "
    "fixed width and fixed colours. To list the names of the figures, give an unknown name.",
)
@click.option(
    "--audit/--no-audit",
    default=None,
    help="Check the runs for fairness, for an HTML page. By default, runs of up to "
    f"{MOST_CALLS:,} calls are checked; --audit checks all runs, --no-audit none.",
)
@click.option(
    "--matches",
    default="notable",
    metavar="none|notable|N",
    help="Choose the transcripts on an HTML page: none, those worth reading (the default), or N of "
    "each run, those worth reading first, then by number.",
)
@with_task
@in_store
@click.option(
    "--format",
    "form",
    type=click.Choice((*FORMATS, "html")),
    help="Choose the output format (default: text, or the format of the file that -o names).",
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
    figure: str | None,
    audit: bool | None,
    matches: str,
    as_json: bool,
) -> None:
    """Compare RUN… (ids, starts of ids, names or paths) in tables or on an HTML page.

    \b
    parley report last -o report.html
    parley report last --figure result -o result.svg
    parley report k1 k2 q1 q2 --scores others.csv --reference base --control tuned=base
    """
    if output is not None and figure is None:
        refuse_figure_file(output)
    place = open_store(store)
    refs = [place.find(run) for run in runs]
    options = ComparisonOptions(
        scores,
        reference,
        without,
        parse_assignments(controls, "--control"),
        newest,
    )
    report = build_report(refs, options, task_class(task) if task else None)
    if figure is not None:
        if form is not None or as_json:
            raise UsageError("--figure writes SVG or PNG: leave out --format and --json")
        chosen = choose_figure(report.list_figures(), figure)
        if output is None:
            click.echo(chosen.to_svg(), nl=False)
            return
        words = make_cleaner()(chosen.figure.alt or chosen.figure.title)
        say(f"written to {write_figure(chosen, output)}: {words}")
        return
    form = "json" if as_json else form or choose_form(output)
    audits = audit_runs(report, audit) if form == "html" else {}
    page = PageOptions.choose(audits, matches)
    text = report.render(form, None if output else terminal_width(), page)
    if output is None:
        click.echo(text)
        return
    say(f"written to {write_report(output, text)}")


def choose_form(output: str | None) -> str:
    """The format that the ending of a file names; text without a file, else HTML."""
    return "text" if output is None else FORM_OF_ENDING.get(Path(output).suffix.lower(), "html")


def refuse_figure_file(output: str) -> None:
    """Refuse to write a whole report to a file whose ending says that it is a picture."""
    if (ending := Path(output).suffix.lower()) in FIGURE_ENDINGS:
        raise UsageError(
            f"a whole report cannot be written as {ending}: for one figure, add --figure NAME; for "
            "the report, use a file that ends with .html, .txt, .md, .csv or .json"
        )


def audit_runs(report: Report, wanted: bool | None) -> dict[RunRef, AuditSummary]:
    """The audits of all runs in a report."""
    return {result.ref: audit_for_report(result.ref, result.task, wanted) for result in report.runs}
