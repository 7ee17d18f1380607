"""A report on runs in one of its forms: a page, tables, rows for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from parley.config.prices import PriceList
from parley.errors import UsageError
from parley.report.page import page
from parley.results.result import Result
from parley.store.sqlite.reader import SqliteReader
from parley.tables import Table
from parley.tasks.kieval.comparison import Analysis, Asked, analysed
from parley.tasks.kieval.entries import TASKS
from parley.tasks.kieval.sections import Clean, cleaned, sections, tidy


@dataclass(frozen=True)
class Report:
    """Interviews and benchmarks analysed together, where there are some, and every run for
    itself."""

    analysis: Analysis | None
    runs: list[Result]
    others: list[Result]  # of these, the ones that stand for themselves only

    def render(self, form: str = "text") -> str:
        """In one of the forms of tables, as a page, or as json."""
        match form:
            case "html":
                return page(self.analysis, self.runs)
            case "json":
                return self._json()
            case "csv":
                return self._csv()
        clean, parts = cleaned(), list[str]()
        for section in sections(self.analysis) if self.analysis else ():
            title = {"markdown": f"## {section.title}", "latex": f"% {section.title}"}.get(
                form, f"══ {section.title} ══"
            )
            parts += [clean(title), *([clean(section.words)] if section.words else [])]
            parts += [tidy(table, clean).render(form) for table in section.tables]
        return "\n\n".join([*parts, *(clean(result.render(form)) for result in self.others)])

    def _json(self) -> str:
        """All of it; runs that stand for themselves as they are printed elsewhere."""
        data = {**(self.analysis.data if self.analysis else {"schema": "parley.report/1"})}
        data["results"] = [result.data for result in self.others]
        plain = orjson.loads(
            orjson.dumps(
                data, default=lambda value: value._asdict(), option=orjson.OPT_NON_STR_KEYS
            )
        )
        return orjson.dumps(without_secrets(plain, cleaned()), option=orjson.OPT_INDENT_2).decode()

    def _csv(self) -> str:
        """One table: of the analysis, or of a run that stands for itself."""
        if (self.analysis and self.others) or len(self.others) > 1:
            raise UsageError(
                "a csv has one table: report on interviews and benchmarks, "
                "or on one run of another task"
            )
        clean = cleaned()
        return (
            tidy(flat(self.analysis), clean).render("csv")
            if self.analysis
            else clean(self.others[0].render("csv"))
        )


def report(paths: Sequence[Path], asked: Asked | None = None) -> Report:
    """Runs as they were asked about; what is only for interviews and benchmarks is refused where
    there are none."""
    tasks = {}
    for path in paths:
        with SqliteReader(path) as reader:
            if path.resolve() in tasks:
                raise UsageError(f"the run {reader.info.id} is given twice")
            tasks[path.resolve()] = str(reader.info.identity["task"])
    own = [path for path in paths if tasks[path.resolve()] in TASKS]
    if (
        not own
        and asked is not None
        and (asked.scores or asked.reference or asked.without or asked.controls)
    ):
        found = ", ".join(dict.fromkeys(tasks.values()))
        raise UsageError(
            f"scores, reference, without and control are for runs of "
            f"{' and '.join(TASKS)}; found {found}"
        )
    results = {path: Result(path, look_up=PriceList().find) for path in paths}
    others = [result for path, result in results.items() if path not in own]
    return Report(analysed(own, asked or Asked()) if own else None, list(results.values()), others)


def written(path: str | Path, text: str) -> Path:
    """A report in its file."""
    place = Path(path).expanduser()
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise UsageError(f"the report cannot be written to {place}: {wrong}") from None
    return place


def without_secrets(value: Any, clean: Clean) -> Any:
    """Plain data without any secret in it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): without_secrets(each, clean) for name, each in value.items()}
    return [without_secrets(each, clean) for each in value] if isinstance(value, list) else value


def flat(found: Analysis) -> Table:
    """Every figure in a row of its own, unrounded."""
    rows: list[dict[str, Any]] = []
    for cell in found.comparison.cells:
        for measure, figure in {
            **cell.figures,
            **{f"aspect {name}": each for name, each in cell.aspects.items()},
        }.items():
            source = cell.source if measure == "accuracy" else None
            signature = (
                cell.signatures.get("qa" if source == "benchmark" else "kieval")
                if figure.n is not None
                else None
            )
            rows.append(
                {
                    "model": cell.model,
                    "dataset": cell.dataset,
                    "measure": measure,
                    **vars(figure),
                    "from": source,
                }
            )
            rows[-1]["signature"] = signature
    for model, measures in found.comparison.overall.items():
        rows += [
            {"model": model, "measure": f"overall {name}", **vars(figure)}
            for name, figure in measures.items()
        ]
    for column, by in found.comparison.columns.items():
        rows += [
            {"model": model, "measure": column, "value": value, "from": "file"}
            for model, value in by.items()
        ]
    for row in found.correlations:
        r, without = row.correlation, f" without {', '.join(row.without)}" if row.without else ""
        facts = {
            "value": r.r,
            "low": r.interval.low,
            "high": r.interval.high,
            "n": r.n,
            "missing": r.dropped,
            "p": r.p,
        }
        rows.append({"dataset": row.dataset, "measure": f"pearson{without}", **facts})
    for each in found.record.stops:
        place = {
            "model": each["alias"],
            "dataset": each["dataset"],
            "n": each["interviews"],
            "from": each["run"],
        }
        rows += [
            {**place, "measure": f"stop {reason}", "value": count}
            for reason, count in each["reasons"].items()
        ]
        for kind, name in (("early", "ended early"), ("unreadable", "first answer unreadable")):
            part = each[kind]
            rows.append(
                {
                    **place,
                    "measure": name,
                    "value": part["share"],
                    "low": part["low"],
                    "high": part["high"],
                }
            )
    names = [
        "model",
        "dataset",
        "measure",
        "value",
        "low",
        "high",
        "interval",
        "n",
        "missing",
        "p",
        "from",
        "signature",
    ]
    return Table(
        names, [["" if row.get(name) is None else str(row[name]) for name in names] for row in rows]
    )
