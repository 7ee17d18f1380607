"""A report on several runs: an HTML page, tables, JSON or CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from parley.config.prices import PriceList
from parley.config.task_catalogue import installed_tasks, task_of_run
from parley.errors import UsageError
from parley.providers._secrets import make_secret_filter
from parley.report.html import make_cleaner
from parley.report.named_figures import NamedFigure, list_figures
from parley.report.page import make_page, name_run
from parley.report.page_options import PageOptions
from parley.results.compared_runs import (
    AnyComparison,
    ComparedRuns,
    ComparisonOptions,
    ComparisonResult,
    comparisons_of_task,
)
from parley.results.match_notes import mask_data
from parley.results.result import RunResult
from parley.rules.task import Task
from parley.store import read_run
from parley.store.types import RunRef
from parley.tables import Table


@dataclass(frozen=True)
class Report:
    """Comparisons of runs, if a task can compare them, and the result of every run."""

    compared: Sequence[ComparisonResult]
    runs: Sequence[RunResult]
    others: Sequence[RunResult]  # the runs that no comparison includes

    def render(
        self, form: str = "text", width: int | None = None, page: PageOptions | None = None
    ) -> str:
        """The report as text, Markdown, LaTeX, HTML, JSON or CSV; `width`: the width of the text in
        columns; `page`: what the HTML page shows besides results."""
        match form:
            case "html":
                return make_page(self.compared, self.runs, page or PageOptions())
            case "json":
                return self._json()
            case "csv":
                return self._csv()
        clean, parts = make_cleaner(), list[str]()
        for found in self.compared:
            if not found.is_single:
                parts += self._parts(found, form, width)
        alone = {found.runs.refs[0]: found for found in self.compared if found.is_single}
        for result in self.runs:
            if result.ref not in alone and result not in self.others:
                continue  # a comparison of several runs has it
            level = 1 if len(self.runs) == 1 else 2
            if level == 2:
                parts.append(clean(format_heading(name_run(result), form)))
            if result.ref in alone:
                parts += self._parts(alone[result.ref], form, width, level)
            else:
                parts.append(clean(result.render(form, width=width)))
        return "\n\n".join(parts)

    def _parts(
        self, found: ComparisonResult, form: str, width: int | None, level: int = 1
    ) -> Iterator[str]:
        """The parts of a comparison as text, with headings of this level."""
        clean = make_cleaner()
        for name, part in found.parts.items():
            words, tables = found.words(name), found.tables(name)
            if not words and not tables:
                continue
            yield clean(format_heading(part.title, form, level))
            if words:
                yield clean(words)
            for table in tables:
                yield clean_table(table, clean).render(form, width)

    def list_figures(self) -> list[NamedFigure]:
        """The figures of the page, by the names that `--figure` takes."""
        return list_figures(self.compared, self.runs)

    def _json(self) -> str:
        """The whole report; runs without a comparison as `parley show --json` prints them."""
        data: dict[str, Any] = {"schema": "parley.report/1"}
        for found in self.compared:
            data |= found.data
        data["results"] = [result.data for result in self.others]
        cleaned = mask_data(data, make_secret_filter())
        return orjson.dumps(cleaned, option=orjson.OPT_INDENT_2).decode()

    def _csv(self) -> str:
        """One table: of a comparison, or of a single run."""
        if len(self.compared) + len(self.others) > 1:
            raise UsageError(
                "CSV output can have only one table, and these runs give several: report on fewer "
                "runs, or choose another format"
            )
        clean = make_secret_filter()
        if self.compared:
            return clean_table(self.compared[0].rows_table(), clean).render("csv")
        return clean(self.others[0].render("csv"))


def clean_table(table: Table, clean: Callable[[str], str]) -> Table:
    """A table without any secret in it."""
    rows = [[clean(cell) for cell in row] for row in table.rows]
    header = [clean(cell) for cell in table.header]
    note, title = clean(table.note), clean(table.title)
    return replace(table, header=header, rows=rows, note=note, title=title)


def format_heading(title: str, form: str, level: int = 1) -> str:
    """A heading in a form of tables. One of level 2 belongs to the heading above it."""
    marks = "#" * (level + 1)
    line = "══" if level == 1 else "──"
    return {"markdown": f"{marks} {title}", "latex": f"% {title}"}.get(
        form, f"{line} {title} {line}"
    )


def build_report(
    refs: Sequence[RunRef],
    options: ComparisonOptions | None = None,
    task: type[Task] | None = None,
) -> Report:
    """A report on runs. `task` is the class of runs whose task is not installed."""
    look_up = PriceList().find
    return report_on(
        [RunResult(ref, look_up=look_up, task=choose_task(ref, task)) for ref in refs], options
    )


def choose_task(ref: RunRef, task: type[Task] | None) -> type[Task] | None:
    """The class of a run: this one if the run has played it, else the installed one."""
    with read_run(ref) as reader:
        if task is not None and task.name == reader.info.identity["task"]:
            return task
        return task_of_run(reader.info)


def report_on(results: Sequence[RunResult], options: ComparisonOptions | None = None) -> Report:
    """A report on results; options for comparisons are refused if no run can be compared."""
    tasks: dict[RunRef, str] = {}
    seen: set[str] = set()
    foreign: set[RunRef] = set()
    for result in results:
        if result.info.id in seen:
            raise UsageError(f"run {result.info.id} is given twice")
        seen.add(result.info.id)
        tasks[result.ref] = result.info.identity["task"]
        if task_of_run(result.info) is None:
            foreign.add(result.ref)  # an installed task may have the same name
    wanted, known = options or ComparisonOptions(), find_comparisons()
    compared, others = list[ComparisonResult](), list(results)
    for takes, parts in known.items():
        own = [r for r in results if tasks[r.ref] in takes and r.ref not in foreign]
        if own:
            compared.append(ComparisonResult(parts, ComparedRuns(own, wanted)))
            others = [result for result in others if result not in own]
    if not compared and wanted.given:
        found = ", ".join(dict.fromkeys(tasks.values()))
        names = " and ".join(dict.fromkeys(name for takes in known for name in takes))
        raise UsageError(
            f"--scores, --reference, --without and --control need runs of {names}, found runs of "
            f"{found}"
        )
    return Report(compared, results, others)


def find_comparisons() -> dict[tuple[str, ...], list[AnyComparison]]:
    """The parts over several runs that installed tasks offer, by the tasks whose runs they take."""
    parts = dict.fromkeys(
        part for task in installed_tasks()[0].values() for part in comparisons_of_task(task)
    )
    found: dict[tuple[str, ...], list[AnyComparison]] = {}
    for part in parts:
        found.setdefault(part.takes, []).append(part)
    return found


def write_report(path: str | Path, text: str) -> Path:
    """Write a report to its file."""
    place = Path(path).expanduser()
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise UsageError(f"the report cannot be written to {place}: {wrong}") from None
    return place
