"""External scores from a CSV file: further columns by model, and accuracies or scores that no run
has measured."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from parley.errors import UsageError, unknown_name
from parley.tables import plural

LONG = ("model", "column", "value")
# measures of a dataset, as in accuracy@mmlu, and their upper bounds
MEASURES = {"accuracy": 100.0, "kieval": 100.0, "rounds": math.inf}


@dataclass(frozen=True)
class ScoresFile:
    """The scores of a file: by model and column, and by model, dataset and measure."""

    source: str = ""
    columns: dict[str, dict[str, float]] = field(default_factory=dict)  # column: model: value
    # (model, dataset, measure): value
    given: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def refuse_strangers(self, models: Collection[str]) -> None:
        """Refuse a model that has only further columns: its name is most likely misspelt."""
        known = {*models, *(model for model, _, _ in self.given)}
        for column, by in self.columns.items():
            for model in by:
                if model not in known:
                    raise unknown_name(f"model in {self.source}, column {column!r}:", model, known)


def read_scores_file(path: str | Path) -> ScoresFile:
    """Read a CSV file with the header `model,column,value`, or `model` and one column per score."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"{path} cannot be read as a CSV file: {wrong}") from None
    rows = [
        (at, [cell.strip() for cell in row])
        for at, row in enumerate(csv.reader(io.StringIO(text)), 1)
        if any(row)
    ]
    if not rows:
        raise UsageError(
            f"{path} is empty: it needs a header `model,column,value`, "
            f"or `model` and one column per score"
        )
    (_, header), *body = rows
    if "model" not in header:
        raise UsageError(f"{path}, row 1: expected a column `model`, found {', '.join(header)}")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise UsageError(
            f"{path}, row 1: the column {twice[0]!r} appears twice: remove one of them"
        )
    found = ScoresFile(str(path))
    for at, row in body:
        if len(row) != len(header):
            raise UsageError(
                f"{path}, row {at}: this row has {plural(len(row), 'cell')}, but the header has "
                f"{len(header)}: both need the same number"
            )
        for model, column, value in parse_row(
            dict(zip(header, row, strict=True)), f"{path}, row {at}"
        ):
            add_figure(found, model, column, value, f"{path}, row {at}")
    return found


def parse_row(row: dict[str, str], where: str) -> Iterator[tuple[str, str, float]]:
    """Model, column and value; an empty cell is missing."""
    model = row.pop("model")
    if not model:
        raise UsageError(f"{where}: the column `model` is empty: write the name of the model")
    named = {row["column"]: row["value"]} if set(row) == {"column", "value"} else row
    for column, text in named.items():
        if not column:
            raise UsageError(f"{where}: the name of a column is empty: give the column a name")
        if not text:
            continue
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UsageError(
                f"{where}: column `{column}` must be a number, or empty if there is no value, "
                f"not {text!r}"
            )
        yield model, column, value


def add_figure(found: ScoresFile, model: str, column: str, value: float, where: str) -> None:
    """Add a score, and refuse duplicates."""
    measure, mark, dataset = column.partition("@")
    if not mark:
        by = found.columns.setdefault(column, {})
        if model in by:
            raise UsageError(
                f"{where}: the value of `{column}` for {model} is given twice: remove one of them"
            )
        by[model] = value
        return
    if measure not in MEASURES or not dataset:
        raise UsageError(
            f"{where}: the column {column!r} has an unknown name: use accuracy@NAME, "
            "kieval@NAME or rounds@NAME, where NAME is a dataset"
        )
    if not 0 <= value <= MEASURES[measure]:
        raise UsageError(
            f"{where}: `{column}` must be "
            f"{'from 0 to 100' if measure != 'rounds' else '0 or more'} for {model}, not "
            f"{value:g}"
        )
    if (model, dataset, measure) in found.given:
        raise UsageError(
            f"{where}: the value of `{column}` for {model} is given twice: remove one of them"
        )
    found.given[model, dataset, measure] = value
