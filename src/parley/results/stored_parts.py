"""Results of parts that are stored in a run's file, for readers without the task."""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import floor, log10
from typing import Any

import orjson

from parley.errors import ParleyError
from parley.results.part import parts_of_task, qualified_name
from parley.results.types import FIGURES, Figure
from parley.rules.notes import decode
from parley.rules.task import Task
from parley.store.reader import RunReader
from parley.store.types import StoredPart
from parley.tables import Table, round_half_up


def find_stored_parts(
    reader: RunReader, kind: type[Task] | None, taken: Container[str]
) -> dict[str, StoredPart]:
    """The stored results of parts that this class of the task does not bring, by their names, or by
    TASK.PART if a name is taken."""
    task, kept = reader.info.identity["task"], reader.run.part_results()
    own = {qualified_name(part, task) for part in parts_of_task(kind)}
    rest = [each for each in kept if is_part_of_task(each) and each.name not in own]
    short = [stored.name.rpartition(".")[2] for stored in rest]
    return {
        name if short.count(name) == 1 and name not in taken else stored.name: stored
        for name, stored in zip(short, rest, strict=True)
    }


def is_part_of_task(stored: StoredPart) -> bool:
    """Whether a stored result may come from a task: general parts are never stored."""
    return "." in stored.name


def describe_stored(stored: StoredPart) -> str:
    """What to know about a stored result."""
    task, _, name = stored.name.rpartition(".")
    return (
        f"part `{name}` was stored with the run by the task `{task}` (Parley "
        f"{stored.version}). These numbers were not recomputed, and no digest covers them, so "
        "trust them only as far as you trust whoever wrote the record"
    )


def parse_stored(text: str, stored: StoredPart) -> Any:
    """Parse stored JSON."""
    try:
        return orjson.loads(text)
    except ValueError as wrong:
        raise ParleyError(f"the stored part `{stored.name}` is damaged: {wrong}") from None


def read_stored_rows(stored: StoredPart) -> list[list[dict[str, Any]]]:
    """Stored data as rows: a list of objects as it is, an object list by list."""
    data = parse_stored(stored.data, stored)
    if isinstance(data, list):
        found = {"": data}
    else:
        fields = data.items() if isinstance(data, dict) else ()
        rest = {name: each for name, each in fields if not isinstance(each, list)}
        lists = {name: each for name, each in fields if isinstance(each, list)}
        found = {"": [rest] if rest else [], **lists}
    return [
        [({"list": name} if name else {}) | flatten(row) for row in rows if isinstance(row, dict)]
        for name, rows in found.items()
        if rows
    ]


def flatten(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """An object as one row; keys of nested objects are joined by `_`."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= flatten(value, f"{before}{name}_")
        else:
            text = orjson.dumps(value).decode() if isinstance(value, list) else value
            found[f"{before}{name}"] = text
    return found


def make_stored_tables(stored: StoredPart) -> list[Table]:
    """The stored result of a part, as plain tables."""
    note, tables = describe_stored(stored), []
    for rows in read_stored_rows(stored):
        columns = dict.fromkeys(column for row in rows for column in row)
        header = [name for name in columns if any(row.get(name) is not None for row in rows)]
        header = header or list(columns)
        cells = [[format_stored(row.get(column)) for column in header] for row in rows]
        tables.append(Table(header, cells, note=note))
    return tables


def format_stored(value: Any) -> str:
    """A stored value for a table; fractions are rounded to three significant digits."""
    if value is None:
        return "–"
    if not isinstance(value, float) or value == 0:
        return str(value)
    if abs(value) < 0.0001:
        return f"{value:.3g}"
    return round_half_up(value, max(0, 2 - floor(log10(abs(value)))))


def read_stored_figures(stored: StoredPart) -> list[Figure]:
    """The stored figures of a part."""
    found: list[Figure] = []
    data = parse_stored(stored.figures, stored)
    for each in data if isinstance(data, list) else [data]:
        kind = FIGURES.get(str(each.get("kind"))) if isinstance(each, dict) else None
        try:
            if kind is None:
                raise ValueError(f"unknown kind of figure: {each!r:.80}")
            found.append(decode(each, kind, "figure"))
        except ValueError as wrong:
            raise ParleyError(f"the stored part `{stored.name}` is damaged: {wrong}") from None
    return found
