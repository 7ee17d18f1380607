"""Find datasets: named ones of Parley and of other packages, and the user's files and folders."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from parley.datasets import Dataset, benchmarks
from parley.datasets.files import (
    LocatedRow,
    PathCheck,
    allow_every_path,
    describe_separators,
    is_dataset_path,
    read_rows,
)
from parley.datasets.formats import (
    Columns,
    describe_columns,
    find_form,
    item_types_of_row,
    known_columns,
    make_items,
    no_form_error,
    rename_columns,
)
from parley.datasets.item_rows import item_fields, misspelt_columns
from parley.errors import UsageError, describe_type, unknown_name
from parley.tables import format_item_count

NAMED = "dataset:"  # prefix of a name that is also a file in the working directory
USUAL = "samples"  # the default dataset of a task


def load_dataset(dataset: Dataset) -> list[Any]:
    """All items of a named dataset. Another number of items means another edition, an error."""
    rows = [
        LocatedRow(f"{dataset.name}, row {n}", n, row) for n, row in enumerate(dataset.rows(), 1)
    ]
    found = make_items(rows, dataset.item_type)
    if len(found) != dataset.count:
        has = format_item_count(dataset.count)
        raise UsageError(
            f"dataset {dataset.name} should have {has}, but the source has {len(found)}, so it "
            "is a different edition of the dataset"
        )
    return found


@cache
def all_datasets() -> tuple[Dataset, ...]:
    """Every named dataset: Parley's, then those of other packages."""
    modules = [
        import_module(f"{benchmarks.__name__}.{module.name}")
        for module in pkgutil.iter_modules(benchmarks.__path__)
    ]
    own = [dataset for module in modules for dataset in module.DATASETS]
    others = [entry.load() for entry in entry_points(group="parley.datasets")]
    found: dict[tuple[str, type], Dataset] = {}
    for dataset in [*own, *others]:
        if not isinstance(dataset, Dataset):
            raise UsageError(
                "an entry point in the group `parley.datasets` must be a "
                f"parley.datasets.Dataset, not {dataset!r}: fix or uninstall the package"
            )
        if found.setdefault((dataset.name, dataset.item_type), dataset) is not dataset:
            raise UsageError(
                f"two datasets with items of type {dataset.item_type.__name__} are named "
                f"{dataset.name!r}: uninstall one of the packages that provide them"
            )
    return tuple(found.values())


def datasets_named(name: str, kind: type | None = None) -> list[Dataset]:
    """The datasets with this name, at most one for each item type."""
    return [each for each in all_datasets() if each.name == name and kind in (None, each.item_type)]


def default_dataset(kind: type | None) -> str | None:
    """The default dataset of an item type: the bundled samples, if there are any."""
    return USUAL if kind is not None and datasets_named(USUAL, kind) else None


def load_items(
    reference: str,
    kind: type,
    columns: Columns | None = None,
    check_path: PathCheck = allow_every_path,
) -> list[Any]:
    """All items of a dataset. The error for a row that does not fit names the row. If somebody
    else's file names the dataset, `check_path` refuses files that it must not lead to."""
    reference = resolve_reference(reference, kind, bool(columns))
    if not columns:
        for dataset in datasets_named(reference, kind):
            return dataset.items()
    for field in columns or {}:
        if field not in known_columns(kind):
            raise unknown_name(
                f"field of {kind.__name__} in the columns for {reference}:",
                field,
                known_columns(kind),
            )
    rows = list(load_rows(reference, kind, check_path))
    if not rows:
        raise UsageError(f"dataset {reference} is empty: add rows with {describe_columns(kind)}")
    return make_items(rows, kind, columns)


def resolve_reference(reference: str, kind: type | None, columns: bool = False) -> str:
    """A dataset by name or path. If both exist, the user must choose: `./mmlu` is the file or
    folder, `dataset:mmlu` the named dataset."""
    if reference.startswith(NAMED):
        return reference.removeprefix(NAMED)
    if (
        not columns
        and not is_dataset_path(reference)
        and Path(reference).exists()
        and datasets_named(reference, kind)
    ):
        what = "folder" if Path(reference).is_dir() else "file"
        raise UsageError(
            f"{reference} is both a named dataset and a {what} in this directory: write "
            f"./{reference} for the {what} or {NAMED}{reference} for the named dataset"
        )
    return reference


def load_examples(reference: str, kind: type, own: bool = False) -> list[Any]:
    """The worked examples of a named dataset. Of any other source all items, or none if `own`."""
    reference = resolve_reference(reference, kind)
    for dataset in datasets_named(reference, kind):
        if dataset.examples is not None:
            rows = [
                LocatedRow(f"{dataset.name}, example {n}", n, row)
                for n, row in enumerate(dataset.examples(), 1)
            ]
            return make_items(rows, kind)
    return [] if own else load_items(reference, kind)


def usual_shots(reference: str, kind: type) -> int | None:
    """The usual number of worked examples for a dataset, if it declares one."""
    reference = resolve_reference(reference, kind)
    return next((dataset.shots for dataset in datasets_named(reference, kind)), None)


def describe_reading(
    reference: str, kind: type, columns: Columns | None = None, unread: bool = False
) -> list[str]:
    """Notes on how a file is read: a separator other than the comma, columns in the first row that
    look misspelled, and on request all columns that are not read."""
    reference = resolve_reference(reference, kind, bool(columns))
    if not columns and datasets_named(reference, kind):
        return []
    odd = describe_separators(Path(reference).expanduser())
    first = next(load_rows(reference, kind), None)
    if first is None or not isinstance(first.row, Mapping):
        return odd
    row = rename_columns(first.row, columns, first.where) if columns else first.row
    form = find_form(row, kind)
    series = form.series(row) if form is not None and form.series is not None else ()
    rest = [column for column in row if column not in series]
    odd += [f"dataset {reference}: {each}" for each in misspelt_columns(rest, known_columns(kind))]
    if form is not None and form.notes is not None and not columns:
        rows = [each for each in load_rows(reference, kind) if isinstance(each.row, Mapping)]
        odd += [f"dataset {reference}: {each}" for each in form.notes(rows)]
    read = {*item_fields(kind), *((*form.columns, *form.also) if form is not None else ())}
    left = [str(column) or "(unnamed column)" for column in rest if column not in read]
    if unread and left:
        odd.append(f"dataset {reference}: Parley does not use the columns {', '.join(left)}")
    return odd


def load_rows(
    reference: str, kind: type | None = None, check_path: PathCheck = allow_every_path
) -> Iterator[LocatedRow]:
    """The rows of a file or folder. Anything else that looks like a name is an unknown name."""
    path = Path(reference).expanduser()
    if not is_dataset_path(reference) and not path.exists():
        there = {each.name for each in all_datasets() if kind in (None, each.item_type)}
        wrong = unknown_name("dataset", reference, there)
        raise UsageError(f"{wrong}; for a file or folder write ./{reference}")
    yield from read_rows(path, check_path)


def item_type_of_dataset(reference: str, columns: Columns | None = None) -> type:
    """The type of a dataset's items, by its name or by its first row."""
    reference = resolve_reference(reference, None, bool(columns))
    kinds = [] if columns else [dataset.item_type for dataset in datasets_named(reference)]
    if not kinds:
        first = next(load_rows(reference), None)
        if first is None:
            raise UsageError(f"dataset {reference} is empty: add rows or choose another dataset")
        if not isinstance(first.row, Mapping):
            raise UsageError(
                f"{first.where}: expected an object with named fields, found "
                f"{describe_type(first.row)}; add --task TASK to name the task that uses the "
                "items"
            )
        row = rename_columns(first.row, columns, first.where) if columns else first.row
        kinds = item_types_of_row(row)
        if not kinds:
            raise no_form_error(first._replace(row=row))
    if len(kinds) > 1:
        several = ", ".join(kind.__name__ for kind in kinds)
        raise UsageError(
            f"dataset {reference} fits several types of items ({several}): add --task TASK to "
            "choose one"
        )
    return kinds[0]
