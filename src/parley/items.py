"""Items from a file: JSON lines, a JSON list or CSV, one row an item of the task's own type."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

from parley.errors import UsageError
from parley.parameters import fitted
from parley.task import Task


def items_from(path: str, task: type[Task]) -> list[Any]:
    """All items of a file; a row that does not fit is an error that names it."""
    kind_of(task)
    place = Path(path).expanduser()
    try:
        text = place.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"dataset {path} cannot be read: {wrong}") from None
    return [item_from(row, task, f"{path}, row {number}", number) for number, row in enumerate(rows_in(text, place), 1)]


def rows_in(text: str, place: Path) -> Iterator[Any]:
    """The rows of a file, by its ending."""
    if place.suffix == ".csv":
        yield from csv.DictReader(text.splitlines(keepends=True))
    elif place.suffix == ".json":
        found = json_in(text, str(place))
        if not isinstance(found, list):
            raise UsageError(f"dataset {place}: wanted a list of items, found {type(found).__name__}")
        yield from found
    elif place.suffix == ".jsonl":
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield json_in(line, f"{place}, line {number}")
    else:
        raise UsageError(f"dataset {place}: wanted a .jsonl, .json or .csv file")


def json_in(text: str, where: str) -> Any:
    """JSON, or an error that says where it is none."""
    try:
        return json.loads(text)
    except ValueError as wrong:
        raise UsageError(f"{where}: not JSON: {wrong}") from None


def item_from(row: Any, task: type[Task], where: str, number: int) -> Any:
    """A row as an item; without an `id` its number serves."""
    kind = kind_of(task)
    wanted = {field.name: field for field in fields(kind)}
    if not isinstance(row, Mapping):
        raise UsageError(f"{where}: wanted an object with {', '.join(wanted)}, found {type(row).__name__}")
    row = {"id": str(number), **{str(name): value for name, value in row.items()}}
    needed = [name for name, field in wanted.items() if field.default is MISSING and field.default_factory is MISSING]
    if missing := [name for name in needed if row.get(name) is None]:
        raise UsageError(f"{where}: no {', no '.join(missing)}; found {', '.join(row)}")
    return fitted(kind, {**{name: row[name] for name in wanted if name in row}, "id": str(row["id"])}, "field of", where)


def kind_of(task: type[Task]) -> Any:
    """The type of a task's items."""
    if task.item_type is None:
        raise UsageError(f"{task.name} is not played on items, so it takes no dataset")
    return task.item_type


def by_id(items: Iterable[Any]) -> dict[str, Any]:
    """Items under their ids, each once."""
    found: dict[str, Any] = {}
    for item in items:
        if found.setdefault(str(item.id), item) is not item:
            raise UsageError(f"two items have the id {item.id!r}")
    return found


def stored(items: Sequence[Any]) -> list[tuple[str, bytes]]:
    """Items as a run keeps them."""
    return [(str(item.id), json.dumps(asdict(item), ensure_ascii=False).encode()) for item in items]
