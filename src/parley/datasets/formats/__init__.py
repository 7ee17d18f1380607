"""Published formats of items, recognised by their columns. The formats of an item type are one file
here."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from parley.datasets.files import LocatedRow
from parley.datasets.item_rows import item_fields, item_from_row, misspelt_columns
from parley.errors import UsageError, describe_type

Row = Mapping[str, Any]
Columns = Mapping[str, str | list[str]]  # field: the column or columns that it is read from


class ColumnValues(list[Any]):
    """The values of several columns that make up one field, with the names of the columns."""

    def __init__(self, values: Iterable[Any], columns: Sequence[str]) -> None:
        super().__init__(values)
        self.columns = tuple(columns)


@dataclass(frozen=True)
class Form:
    """One published format of an item: the columns by which it is recognised, and how the item's
    fields are made from them."""

    item_type: type
    name: str
    columns: tuple[str, ...]
    fields: Callable[[Row], dict[str, Any]]  # raises ValueError if the row is wrong
    also: tuple[str, ...] = ()  # optional columns
    # joins several rows into one item
    joined: Callable[[Sequence[LocatedRow]], Iterable[LocatedRow]] | None = None
    # adds what the name of a file says about its rows
    placed: Callable[[LocatedRow], Row] | None = None
    in_order: tuple[str, ...] = ()  # the columns of rows that are lists
    # changes or refuses rows by comparing all rows of a dataset
    compared: Callable[[Sequence[LocatedRow]], Sequence[LocatedRow]] | None = None
    # further required columns without fixed names; if it finds none, the row has another format
    series: Callable[[Row], Sequence[str]] | None = None
    # notes for the user on how these rows are read
    notes: Callable[[Sequence[LocatedRow]], list[str]] | None = None

    def fits(self, row: Row) -> bool:
        """Whether a row has the columns of this form."""
        return row.keys() >= set(self.columns) and (self.series is None or bool(self.series(row)))

    @property
    def wanted(self) -> str:
        """Its columns and its name, for messages."""
        return f"{', '.join(self.columns)} ({self.name})"


@cache
def load_forms() -> tuple[Form, ...]:
    """Every form, in the order in which they are tried."""
    modules = [
        import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)
    ]
    return tuple(form for module in modules for form in module.FORMS)


def make_items(rows: Sequence[LocatedRow], kind: type, columns: Columns | None = None) -> list[Any]:
    """Make items of all rows of a dataset. Rows that are only parts of an item are joined; two
    items with the same id are an error."""
    rows = rename_rows(rows, columns) if columns else name_columns(rows, kind)
    if rows and isinstance(rows[0].row, Mapping):
        form = find_form(rows[0].row, kind)
        if form is not None and form.joined is not None and not columns:
            rows = list(form.joined(rows))
        if form is not None and form.compared is not None:
            rows = form.compared(rows)
    found, places = [], dict[str, str]()
    for row in rows:
        item = make_item(row, kind)
        if (first := places.setdefault(str(item.id), row.where)) is not row.where:
            raise UsageError(
                f"two items have the same id {item.id!r} ({first} and {row.where}): give every "
                "item its own id"
            )
        found.append(item)
    return found


def name_columns(rows: Sequence[LocatedRow], kind: type) -> Sequence[LocatedRow]:
    """Name the columns of rows that are lists, if a format defines their order."""
    names = next(
        (form.in_order for form in load_forms() if form.item_type is kind and form.in_order), ()
    )
    return [
        each._replace(row=dict(zip(names, each.row, strict=False)))
        if isinstance(each.row, list) and 2 <= len(each.row) <= len(names)
        else each
        for each in rows
    ]


def rename_rows(rows: Sequence[LocatedRow], columns: Columns) -> list[LocatedRow]:
    """Rename the columns of all rows to fields, as the user's `columns` say."""
    return [
        each._replace(
            row=rename_columns(each.row, columns, each.where), columns=tuple(map(str, each.row))
        )
        if isinstance(each.row, Mapping)
        else each
        for each in rows
    ]


def make_item(found: LocatedRow, kind: type) -> Any:
    """Make an item of a row in any known format."""
    row = found.row
    if not isinstance(row, Mapping):
        raise UsageError(
            f"{found.where}: expected an object with {describe_columns(kind)}; "
            f"found {describe_type(row)}"
        )
    form = find_form(row, kind)
    if form is not None:
        if form.placed is not None:
            row = form.placed(found._replace(row=row))
        try:
            row = form.fields(row)
        except ValueError as wrong:
            raise UsageError(
                f"{found.where} ({form.name}): {wrong}; the columns are {found.own_columns}"
            ) from None
    elif any(form.item_type is kind for form in load_forms()):
        raise no_form_error(found._replace(row=row), kind)
    return item_from_row(row, kind, found.where, found.id or found.number)


def find_form(row: Row, kind: type) -> Form | None:
    """The format of a row, if it is known."""
    return next((form for form in load_forms() if form.item_type is kind and form.fits(row)), None)


def no_form_error(found: LocatedRow, kind: type | None = None) -> UsageError:
    """The error for a row in no known format. It names the nearest one, what is missing, and how to
    map columns."""
    forms = [form for form in load_forms() if kind in (None, form.item_type)]
    row = found.row
    near = min(forms, key=lambda form: missing_share(row, form))
    missing = [column for column in near.columns if column not in row]
    read = near.series(row) if near.series is not None else ()
    whose = f" for {kind.__name__} items" if kind is not None else ""
    wanted = (
        f"Parley does not know this format; the nearest known format{whose} has the "
        f"columns {near.wanted}"
    )
    if kind is None and missing_share(row, near)[0] >= 1:
        missing, wanted = [], "none of the columns belongs to a known format"
    return UsageError(
        "; ".join(
            [
                f"{found.where}: {wanted}",
                f"this file has the columns {found.own_columns}",
                *misspelt_columns(
                    [column for column in row if column not in read], known_columns(near.item_type)
                ),
                f"to map a column, use --column {(missing or ['FIELD'])[0]}=COLUMN (the key "
                "`columns` in an experiment file)"
                + (
                    ""
                    if kind is not None
                    else ", or add --task TASK to name the task that uses the items"
                ),
            ]
        )
    )


def missing_share(row: Row, form: Form) -> tuple[float, int, int]:
    """The share of a format's columns that a row lacks; columns that look misspelled count half.

    Ties are broken by the longer series, then by the item's own fields.
    """
    near = {str(column).strip().lower() for column in row}
    missing = [column for column in form.columns if column not in row]
    alike = sum(
        bool(get_close_matches(column.lower(), near, n=1, cutoff=0.75)) for column in missing
    )
    series = form.series(row) if form.series is not None else ()
    lacking = len(missing) - alike / 2 + (form.series is not None and not series)
    foreign = sum(column not in item_fields(form.item_type) for column in form.columns)
    return lacking / len(form.columns), len(form.columns) - 2 * len(series), foreign


def describe_columns(kind: type) -> str:
    """The columns of all formats of an item type, for messages."""
    known = [form.wanted for form in load_forms() if form.item_type is kind]
    return " or ".join(known) if known else ", ".join(item_fields(kind))


def known_columns(kind: type) -> list[str]:
    """Every column that some format of an item type reads."""
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
    """Rename the columns of a row to fields, as the user's `columns` say."""
    named = [
        column
        for each in columns.values()
        for column in ([each] if isinstance(each, str) else each)
    ]
    if missing := [column for column in named if column not in row]:
        raise UsageError(
            f"{where}: there is no column {', '.join(missing)}; the columns are "
            f"{', '.join(map(str, row))}"
        )
    rest = {column: value for column, value in row.items() if column not in named}
    taken = {
        field: row[each]
        if isinstance(each, str)
        else ColumnValues([row[column] for column in each], each)
        for field, each in columns.items()
    }
    return {**rest, **taken}


def item_types_of_row(row: Any) -> list[type]:
    """The item types that a row could be."""
    if not isinstance(row, Mapping):
        return []
    return list(dict.fromkeys(form.item_type for form in load_forms() if form.fits(row)))
