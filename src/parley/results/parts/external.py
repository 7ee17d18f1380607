"""Rank correlations of results with external scores, over models (AGE, table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.datasets.files import LocatedRow, read_file_rows
from parley.errors import UsageError, describe_type
from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.statistics.correlation import spearman
from parley.tables import Table, format_interval, format_number

NAMES = ("alias", "model")  # columns that say whose scores a row holds


@dataclass(frozen=True)
class ExternalCorrelation:
    """Spearman's rho of a metric of the run with a column of the file, over the models that have
    both."""

    score: str
    metric: str
    role: str
    rho: float | None
    p: float | None
    low: float | None
    high: float | None
    models: int
    left_out: int


def compute_external(run: RunScores) -> tuple[ExternalCorrelation, ...]:
    """Correlate every metric of the run with every column of the file; () without a file."""
    if run.scores_file is None:
        return ()
    scores = read_scores(run.scores_file, {row.alias: row.model_requested for row in run.results})
    found = []
    for metric, role in dict.fromkeys((row.metric, row.role) for row in run.results):
        means = {
            row.alias: row.mean for row in run.results if (row.metric, row.role) == (metric, role)
        }
        for column, given in scores.items():
            rho = spearman(list(means.values()), [given.get(alias) for alias in means])
            ends = (rho.interval.low, rho.interval.high)
            found.append(
                ExternalCorrelation(column, metric, role, rho.r, rho.p, *ends, rho.n, rho.dropped)
            )
    return tuple(found)


def read_scores(file: str | Path, models: Mapping[str, str]) -> dict[str, dict[str, float | None]]:
    """By column, the score of each model that the file knows, under its alias here or under
    PROVIDER/NAME."""
    rows = list(read_file_rows(Path(file).expanduser()))
    found: dict[str, dict[str, float | None]] = {}
    first: dict[str, str] = {}
    for each in rows:
        who, columns = split_row(each)
        for alias in [alias for alias, model in models.items() if who in (alias, model)]:
            if (before := first.setdefault(alias, each.where)) is not each.where:
                raise UsageError(
                    f"{each.where}: the model `{alias}` already has scores in {before}: remove "
                    "one of the two rows"
                )
            for column, value in columns.items():
                found.setdefault(column, {})[alias] = parse_score(value, column, each.where)
    if not found:
        known = ", ".join(models) or "no model has a result yet"
        raise UsageError(
            f"{file}: no row names a model of this run: write the aliases of the models "
            f"({known}) into a column `alias`"
        )
    return found


def split_row(each: LocatedRow) -> tuple[str, dict[str, Any]]:
    """Whose scores a row holds, and the scores."""
    row = each.row if isinstance(each.row, dict) else {}
    name = next((name for name in NAMES if name in row), None)
    columns = {column: value for column, value in row.items() if column not in NAMES}
    if name is None or not columns:
        said = ", ".join(map(str, row)) or describe_type(each.row)
        raise UsageError(
            f"{each.where}: expected a column `alias` and at least one column of scores, found "
            f"{said}"
        )
    return str(row[name]).strip(), columns


def parse_score(value: Any, column: str, where: str) -> float | None:
    """A score; an empty cell means that it is missing."""
    if value is None or str(value).strip() == "":
        return None
    try:
        found = float(str(value).strip().removesuffix("%"))
    except ValueError:
        found = float("nan")
    if not abs(found) < float("inf"):
        raise UsageError(f"{where}: column `{column}` must be a number, not {value!r}")
    return found


def external_tables(found: Sequence[ExternalCorrelation], style: Style) -> list[Table]:
    rows = [
        [
            row.score,
            row.metric,
            row.role,
            format_number(row.rho),
            format_interval(row.low, row.high),
        ]
        + [format_number(row.p, 3), str(row.models), str(row.left_out)]
        for row in found
    ]
    header = ["score", "metric", "role", "rho", "95% interval", "p", "models", "without a score"]
    note = (
        "Spearman's rank correlation over models; with few models, the correlation is very "
        "uncertain"
    )
    return [Table(header, rows, left=3, note=note)]


PARTS = (
    Part(
        "external",
        "Correlation with external scores",
        tuple[ExternalCorrelation, ...],
        compute_external,
        tables=external_tables,
        absent=(
            "not applicable: you gave no external scores. Use --scores FILE.csv, with a column "
            "`alias` and one column per score"
        ),
    ),
)
