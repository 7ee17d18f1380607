"""A report on several runs: an HTML page, tables, JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from parley.config.prices import PriceList
from parley.config.task_catalogue import installed_tasks, task_of_run
from parley.errors import UsageError
from parley.report.figure_files import NamedFigure, list_figures
from parley.report.page import make_page, name_run
from parley.report.page_options import PageOptions
from parley.report.sections import (
    ComparisonResult,
    ReportOptions,
    RunComparison,
    clean_data,
    clean_table,
    make_cleaner,
    make_secret_filter,
)
from parley.results.part import module_beside_rule
from parley.results.result import RunResult
from parley.rules.task import Task
from parley.store import RunRef, read_run


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
        clean, parts = make_secret_filter(), list[str]()
        for found in self.compared:
            if len(found.refs) > 1:
                parts += self._sections(found, form, width)
        alone = {found.refs[0]: found for found in self.compared if len(found.refs) == 1}
        for result in self.runs:
            if result.ref not in alone and result not in self.others:
                continue  # a comparison of several runs has it
            level = 1 if len(self.runs) == 1 else 2
            if level == 2:
                parts.append(clean(format_heading(name_run(result), form)))
            if result.ref in alone:
                parts += self._sections(alone[result.ref], form, width, level)
            else:
                parts.append(clean(result.render(form, width=width)))
        return "\n\n".join(parts)

    def _sections(
        self, found: ComparisonResult, form: str, width: int | None, level: int = 1
    ) -> Iterator[str]:
        """The sections of a comparison as text, with headings of this level."""
        clean = make_secret_filter()
        for section in found.sections:
            yield clean(format_heading(section.title, form, level))
            if section.words:
                yield clean(section.words)
            for table in section.tables:
                yield clean_table(table, clean).render(form, width)

    def list_figures(self) -> list[NamedFigure]:
        """The figures of the page, by the names that `--figure` takes."""
        sections = [section for found in self.compared for section in found.sections]
        return list_figures(sections, self.runs, make_cleaner())

    def _json(self) -> str:
        """The whole report; runs without a comparison as `parley show --json` prints them."""
        data: dict[str, Any] = {"schema": "parley.report/1"}
        for found in self.compared:
            data |= found.data
        data["results"] = [result.data for result in self.others]
        plain = orjson.loads(
            orjson.dumps(
                data, default=lambda value: value._asdict(), option=orjson.OPT_NON_STR_KEYS
            )
        )
        cleaned = clean_data(plain, make_secret_filter())
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
            return clean_table(self.compared[0].table, clean).render("csv")
        return clean(self.others[0].render("csv"))


def format_heading(title: str, form: str, level: int = 1) -> str:
    """A heading in a form of tables. One of level 2 belongs to the heading above it."""
    marks = "#" * (level + 1)
    line = "══" if level == 1 else "──"
    return {"markdown": f"{marks} {title}", "latex": f"% {title}"}.get(
        form, f"{line} {title} {line}"
    )


def build_report(
    refs: Sequence[RunRef],
    options: ReportOptions | None = None,
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


def report_on(results: Sequence[RunResult], options: ReportOptions | None = None) -> Report:
    """A report on results; options for comparisons are refused if no run can be compared."""
    tasks: dict[RunRef, str] = {}
    seen: set[str] = set()
    foreign: set[RunRef] = set()
    for result in results:
        with read_run(result.ref) as reader:
            if reader.info.id in seen:
                raise UsageError(f"run {reader.info.id} is given twice")
            seen.add(reader.info.id)
            tasks[result.ref] = reader.info.identity["task"]
            if task_of_run(reader.info) is None:
                foreign.add(result.ref)  # an installed task may have the same name
    wanted = options or ReportOptions()
    known = find_comparisons()
    compared_tasks = {task for ref, task in tasks.items() if ref not in foreign}
    taking = [each for each in known if set(each.tasks) & compared_tasks]
    if not taking and wanted.given:
        found = ", ".join(dict.fromkeys(tasks.values()))
        names = " and ".join(dict.fromkeys(name for each in known for name in each.tasks))
        raise UsageError(
            f"--scores, --reference, --without and --control need runs of {names}, found runs of "
            f"{found}"
        )
    compared, others = [], list(results)
    for each in taking:
        own = [ref for ref in tasks if tasks[ref] in each.tasks and ref not in foreign]
        compared.append(replace(each.compare(own, wanted), refs=own))
        others = [result for result in others if result.ref not in own]
    return Report(compared, results, others)


def find_comparisons() -> list[RunComparison]:
    """The comparisons that installed tasks offer."""
    found: list[RunComparison] = []
    for task in installed_tasks()[0].values():
        if (module := module_beside_rule(task, "report")) is not None:
            found += module.COMPARISONS
    return found


def write_report(path: str | Path, text: str) -> Path:
    """Write a report to its file."""
    place = Path(path).expanduser()
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise UsageError(f"the report cannot be written to {place}: {wrong}") from None
    return place
