"""Published forms of items: a row is known by its columns. The forms of an item type are one file
here."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from parley.datasets.files import LocatedRow
from parley.datasets.item_rows import item_fields, item_from_row, misspelt_columns
from parley.errors import UsageError

Row = Mapping[str, Any]
Columns = Mapping[str, str | list[str]]  # field: the column, or the columns, that it is taken from


@dataclass(frozen=True)
class Form:
    """One way in which an item is published: the columns by which it is known, and the item's
    fields made of them."""

    item_type: type
    name: str
    columns: tuple[str, ...]
    fields: Callable[[Row], dict[str, Any]]  # a ValueError says what is wrong with the row
    also: tuple[str, ...] = ()  # further columns that are read where they are there
    # where an item is made of several rows
    joined: Callable[[Sequence[LocatedRow]], Iterable[LocatedRow]] | None = None
    # where the name of a file says something about its rows
    placed: Callable[[LocatedRow], Row] | None = None
    in_order: tuple[str, ...] = ()  # of rows that are lists: what stands where


@cache
def load_forms() -> tuple[Form, ...]:
    """Every form, in the order in which they are tried."""
    modules = [
        import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)
    ]
    return tuple(form for module in modules for form in module.FORMS)


def make_items(rows: Sequence[LocatedRow], kind: type, columns: Columns | None = None) -> list[Any]:
    """All rows of a dataset as items, no two of which have the same id; rows that are only parts of
    items are put together."""
    rows = name_columns(rows, kind) if not columns else rows
    if rows and not columns and isinstance(rows[0].row, Mapping):
        form = next(
            (
                each
                for each in load_forms()
                if each.item_type is kind and rows[0].row.keys() >= set(each.columns)
            ),
            None,
        )
        if form is not None and form.joined is not None:
            rows = list(form.joined(rows))
    found, places = [], dict[str, str]()
    for row in rows:
        item = make_item(row, kind, columns)
        if (first := places.setdefault(str(item.id), row.where)) is not row.where:
            raise UsageError(
                f"two items have the id {item.id!r}: {first}, and {row.where}; "
                f"each wants an id of its own"
            )
        found.append(item)
    return found


def name_columns(rows: Sequence[LocatedRow], kind: type) -> Sequence[LocatedRow]:
    """Rows that are lists with names for their columns, where a form has them."""
    names = next(
        (form.in_order for form in load_forms() if form.item_type is kind and form.in_order), ()
    )
    return [
        each._replace(row=dict(zip(names, each.row, strict=False)))
        if isinstance(each.row, list) and 2 <= len(each.row) <= len(names)
        else each
        for each in rows
    ]


def make_item(found: LocatedRow, kind: type, columns: Columns | None = None) -> Any:
    """A row as an item, in whichever form it is; the fields of the item themselves are always
    one."""
    row = found.row
    if not isinstance(row, Mapping):
        raise UsageError(
            f"{found.where}: wanted an object with {describe_columns(kind)}; "
            f"found {type(row).__name__}"
        )
    if columns:
        row = rename_columns(row, columns, found.where)
    for form in load_forms():
        if form.item_type is kind and row.keys() >= set(form.columns):
            if form.placed is not None:
                row = form.placed(found._replace(row=row))
            try:
                row = form.fields(row)
            except ValueError as wrong:
                raise UsageError(
                    f"{found.where} ({form.name}): {wrong}; found {', '.join(map(str, row))}"
                ) from None
            return item_from_row(row, kind, found.where, found.number)
    if any(form.item_type is kind for form in load_forms()):
        said = "; ".join(
            [", ".join(map(str, row)) or "nothing", *misspelt_columns(row, known_columns(kind))]
        )
        raise UsageError(
            f"{found.where}: wanted {describe_columns(kind)}; found {said}; "
            "an experiment file can say which column is which: dataset: {path: FILE, "
            "columns: {FIELD: COLUMN}}"
        )
    return item_from_row(row, kind, found.where, found.number)


def describe_columns(kind: type) -> str:
    """The columns that are understood, in words."""
    known = [
        f"{', '.join(form.columns)} ({form.name})"
        for form in load_forms()
        if form.item_type is kind
    ]
    return " or ".join(known) if known else ", ".join(item_fields(kind))


def known_columns(kind: type) -> list[str]:
    """Every column that is read in some form of an item."""
    forms = [form for form in load_forms() if form.item_type is kind]
    return list(
        dict.fromkeys(
            [
                *item_fields(kind),
                *(column for form in forms for column in (*form.columns, *form.also)),
            ]
        )
    )


def rename_columns(row: Row, columns: Columns, where: str) -> Row:
    """A row with the columns that a configuration names under the fields that they stand for."""
    named = [
        column
        for each in columns.values()
        for column in ([each] if isinstance(each, str) else each)
    ]
    if missing := [column for column in named if column not in row]:
        raise UsageError(
            f"{where}: no column {', '.join(missing)}; found {', '.join(map(str, row))}"
        )
    rest = {column: value for column, value in row.items() if column not in named}
    taken = {
        field: row[each] if isinstance(each, str) else [row[column] for column in each]
        for field, each in columns.items()
    }
    return {**rest, **taken}


def item_types_of_row(row: Any) -> list[type]:
    """The item types that a row can be."""
    if not isinstance(row, Mapping):
        return []
    return list(
        dict.fromkeys(form.item_type for form in load_forms() if row.keys() >= set(form.columns))
    )
