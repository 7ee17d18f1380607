"""How results agree with scores from elsewhere: rank correlations over models (AGE, table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parley.datasets.files import Located, rows_of
from parley.errors import UsageError
from parley.statistics.correlation import spearman
from parley.tables import Table, between, nothing, number

NAMES = ("alias", "model")  # columns that say whose scores a row holds


def external(results: Sequence[dict[str, Any]], file: str | Path) -> list[dict[str, Any]]:
    """Every metric of a run beside every column of a file: Spearman's rho, its p and interval, and
    the models it rests on."""
    scores = scores_in(file, {row["alias"]: row["model_requested"] for row in results})
    found = []
    for metric, role in dict.fromkeys((row["metric"], row["role"]) for row in results):
        means = {
            row["alias"]: row["mean"]
            for row in results
            if (row["metric"], row["role"]) == (metric, role)
        }
        for column, given in scores.items():
            rho = spearman(list(means.values()), [given.get(alias) for alias in means])
            facts = {"score": column, "metric": metric, "role": role, "rho": rho.r, "p": rho.p}
            found.append(
                {
                    **facts,
                    "low": rho.interval.low,
                    "high": rho.interval.high,
                    "models": rho.n,
                    "left_out": rho.dropped,
                }
            )
    return found


def scores_in(file: str | Path, models: dict[str, str]) -> dict[str, dict[str, float | None]]:
    """By column, the score of each model that the file knows, under its alias here or under
    PROVIDER/NAME."""
    rows = list(rows_of(Path(file).expanduser()))
    found: dict[str, dict[str, float | None]] = {}
    first: dict[str, str] = {}
    for each in rows:
        who, columns = taken(each)
        for alias in [alias for alias, model in models.items() if who in (alias, model)]:
            if (before := first.setdefault(alias, each.where)) is not each.where:
                raise UsageError(f"{each.where}: {alias} has scores already: {before}")
            for column, value in columns.items():
                found.setdefault(column, {})[alias] = number_in(value, column, each.where)
    if not found:
        known = ", ".join(models) or "nobody has a result"
        raise UsageError(
            f"{file}: no row is about a model of this run ({known}); "
            f"wanted their aliases in a column `alias`"
        )
    return found


def taken(each: Located) -> tuple[str, dict[str, Any]]:
    """Whose scores a row holds, and the scores."""
    row = each.row if isinstance(each.row, dict) else {}
    name = next((name for name in NAMES if name in row), None)
    columns = {column: value for column, value in row.items() if column not in NAMES}
    if name is None or not columns:
        said = ", ".join(map(str, row)) or type(each.row).__name__
        raise UsageError(
            f"{each.where}: wanted a column `alias` and one or more columns of scores, found {said}"
        )
    return str(row[name]).strip(), columns


def number_in(value: Any, column: str, where: str) -> float | None:
    """A score; an empty cell is one that is missing."""
    if value is None or str(value).strip() == "":
        return None
    try:
        found = float(str(value).strip().removesuffix("%"))
    except ValueError:
        found = float("nan")
    if not abs(found) < float("inf"):
        raise UsageError(f"{where}: {column} wants a number, found {value!r}")
    return found


def external_tables(data: Mapping[str, Any]) -> list[Table]:
    """Rank correlations with scores from elsewhere."""
    if not data["external"]:
        return [
            nothing(
                "scores from elsewhere come in a file: --scores FILE.csv, with a column `alias` "
                "and columns of scores"
            )
        ]
    rows = [
        [
            row["score"],
            row["metric"],
            row["role"],
            number(row["rho"]),
            between(row["low"], row["high"]),
        ]
        + [number(row["p"], 3), str(row["models"]), str(row["left_out"])]
        for row in data["external"]
    ]
    header = ["score", "metric", "role", "rho", "95% interval", "p", "models", "without a score"]
    return [
        Table(
            header,
            rows,
            left=3,
            note="Spearman's rank correlation over models; few models say little",
        )
    ]
