"""The page of one result, and the first part of it in a notebook."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from parley.audit.for_report import audit_for_report
from parley.audit.summary import NOT_AUDITED
from parley.providers._secrets import make_secret_filter
from parley.report.build import report_on, write_report
from parley.report.html import read_style, render
from parley.report.model_signs import ModelSigns
from parley.report.page_options import PageOptions
from parley.report.run_page import describe_heading, describe_main, list_facts
from parley.results.result import RunResult
from parley.tables import Table

CONTAINER = "parley-result"


def write_result_page(
    result: RunResult, path: str | Path, audit: bool | None, matches: str | int
) -> Path:
    """Audit a run and write its page; see `parley.Result.report`."""
    audits = {result.ref: audit_for_report(result.ref, result.task, audit)}
    text = report_on([result]).render("html", page=PageOptions.choose(audits, matches))
    return write_report(path, text)


def render_notebook(result: RunResult) -> str:
    """What was found, how sure it is, cautions, and the main result with its intervals. The style
    applies to nothing else in the notebook."""
    page = render(
        "notebook.html",
        ModelSigns.of(result.info.config.contestants),
        container=CONTAINER,
        style=notebook_style(),
        anchor="",  # the sections that facts lead to are not here
        level=3,
        heading=describe_heading(result.info),
        main=describe_main(result),
        facts=list_facts(result, result.info, NOT_AUDITED),
    )
    return str(page)  # what is added to `Markup` is escaped


def render_table(table: Table) -> str:
    """A table as pages have it."""
    page = render("notebook_table.html", container=CONTAINER, style=notebook_style(), shown=table)
    return str(page)


def write_text(result: RunResult) -> str:
    """The table of a result as text, without secrets."""
    return make_secret_filter()(repr(result))


@cache
def notebook_style() -> str:
    """The style sheet of reports, nested in one container: CSS itself applies it nowhere else."""
    own = (
        "background:var(--paper);color:var(--ink);font:16px/1.55 var(--sans);"
        "overflow-wrap:break-word;padding:1rem 1.2rem;border-radius:10px;max-width:68rem"
    )
    return f".{CONTAINER}{{{own};{read_style().replace(':root', '&')}}}"
