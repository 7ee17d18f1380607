"""Parts of a result about guesses, topics and scores from elsewhere, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from parley.courses import fixed
from parley.tables import Table, between, nothing, number

Data = Mapping[str, Any]


def guessing(data: Data) -> list[Table]:
    """How matches of word guessing went, and what stands beside the means."""
    found = data["guessing"]
    if found is None:
        return [nothing("no words were guessed in this run")]
    went = [[each["what"], f"{each['count']} of {each['of']}", *shared(each)] for each in found["matches"]]
    rows = [
        [each["alias"], *(number(each[name], 3) for name in ("comprehension", "confusion", "age", "harmonic"))]
        + [*shared(each["zeros"]), *shared(each["guessed"]), str(each["matches"])]
        for each in found["models"]
    ]
    header = ["model", "comprehension", "confusion", "age", "of the means", "age is 0", "95% interval"]
    header += ["both words guessed", "95% interval", "matches"]
    note = "age: the mean over matches of the harmonic mean; of the means: the harmonic mean of the two means"
    note += fixed(data)
    return [Table(["matches", "", "share", "95% interval"], went), Table(header, rows, note=note)]


def shared(found: Data) -> list[str]:
    """A share and its interval."""
    return [number(found["share"]), between(found["low"], found["high"])]


def topics(data: Data) -> list[Table]:
    """The leading score by topic and model."""
    if not data["topics"]:
        return [nothing("the items of this run have no topics, or nothing was played")]
    leading = data["topics"][0]["metric"]
    rows = [row for row in data["topics"] if row["metric"] == leading]
    aliases, digits = sorted({row["alias"] for row in rows}), data["digits"][leading]
    cells: dict[tuple[str, str], dict[str, Data]] = {}
    for row in rows:
        cells.setdefault((row["topic"], row["role"]), {})[row["alias"]] = row
    lines = []
    for (topic, role), by in cells.items():
        means = [row["mean"] for row in by.values() if row["mean"] is not None]
        middle = number(sum(means) / len(means) if means else None, digits)
        lines.append([topic, role, *(heat(by.get(alias), digits) for alias in aliases), middle])
    note = f"{leading}: mean (95% interval; blocks), and the mean over models; other metrics are in CSV and JSON{fixed(data)}"
    return [Table(["topic", "role", *aliases, "mean"], lines, left=2, note=note)]


def heat(cell: Data | None, digits: int) -> str:
    """A cell of a heat map."""
    if cell is None or cell["mean"] is None:
        return "–"
    return f"{number(cell['mean'], digits)} ({between(cell['low'], cell['high'], digits)}; {cell['blocks']})"


def external(data: Data) -> list[Table]:
    """Rank correlations with scores from elsewhere."""
    if not data["external"]:
        return [nothing("scores from elsewhere come in a file: --scores FILE.csv, with a column `alias` and columns of scores")]
    rows = [
        [row["score"], row["metric"], row["role"], number(row["rho"]), between(row["low"], row["high"])]
        + [number(row["p"], 3), str(row["models"]), str(row["left_out"])]
        for row in data["external"]
    ]
    header = ["score", "metric", "role", "rho", "95% interval", "p", "models", "without a score"]
    return [Table(header, rows, left=3, note="Spearman's rank correlation over models; few models say little")]


def spread(rows: Iterable[Data]) -> list[dict[str, Any]]:
    """Rows whose shares stand in columns of their own."""
    return [
        {
            name: value
            for key, inner in row.items()
            for name, value in ([(f"{key}_{end}", inner[end]) for end in inner] if isinstance(inner, dict) else [(key, inner)])
        }
        for row in rows
    ]
