"""Items: made of rows with the fields of their type, and kept by a run as such."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, asdict, fields
from difflib import get_close_matches
from typing import Any

from parley.errors import UsageError
from parley.rules.parameters import build_dataclass
from parley.rules.task import Task


def item_from_row(row: Any, kind: type, where: str, number: int | str) -> Any:
    """A row with an item's fields as that item; without an `id` its number, or its name, serves."""
    wanted = item_fields(kind)
    if not isinstance(row, Mapping):
        raise UsageError(
            f"{where}: wanted an object with {', '.join(wanted)}, found {type(row).__name__}"
        )
    row = {"id": str(number), **{str(name): value for name, value in row.items()}}
    needed = [
        name
        for name, field in wanted.items()
        if field.default is MISSING and field.default_factory is MISSING
    ]
    if missing := [name for name in needed if row.get(name) is None]:
        raise UsageError(
            "; ".join(
                [
                    f"{where}: no {', no '.join(missing)}; found {', '.join(row)}",
                    *misspelt_columns(row, wanted),
                ]
            )
        )
    item: Any = build_dataclass(
        kind,
        {**{name: row[name] for name in wanted if name in row}, "id": str(row["id"])},
        "field of",
        where,
    )
    if halved := find_lone_surrogate(item):
        raise UsageError(f"{where}: {halved}")
    return item


def find_lone_surrogate(item: Any) -> str | None:
    """What is wrong with a field that holds half a character (a lone surrogate), which no file can
    keep."""
    for name, value in asdict(item).items():
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as wrong:
            half = f"\\u{ord(wrong.object[wrong.start]):04x}"
            return f"{name} holds half a character ({half}); write the whole one, or leave it out"
    return None


def item_fields(kind: Any) -> dict[str, Field[Any]]:
    """The fields of an item type by name."""
    return {field.name: field for field in fields(kind)}


def misspelt_columns(columns: Iterable[Any], known: Iterable[str]) -> list[str]:
    """Columns that nobody reads and that look like one which is missing."""
    found = list(map(str, columns))
    missing = [name for name in known if name not in found]
    near = {
        column: get_close_matches(column.strip().lower(), missing, n=1, cutoff=0.75)
        for column in found
    }
    return [
        f"column {column!r} is not read; did you mean {names[0]!r}?"
        for column, names in near.items()
        if names and column not in known
    ]


def item_type_of_task(task: type[Task]) -> type:
    """The type of a task's items."""
    if task.items is None:
        raise UsageError(f"{task.name} is not played on items, so it takes no dataset")
    return task.items.type
