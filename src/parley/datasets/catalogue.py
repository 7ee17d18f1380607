"""Which datasets there are: those that have a name here or in other packages, and any file or
folder of the user's."""

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
from parley.errors import UsageError, unknown_name
from parley.tables import format_item_count

NAMED = "dataset:"  # before a name that is also a file here
USUAL = "samples"  # what a task is played on where nothing else is said


def load_dataset(dataset: Dataset) -> list[Any]:
    """All items of a dataset with a name; another number of them is another edition."""
    rows = [
        LocatedRow(f"{dataset.name}, row {n}", n, row) for n, row in enumerate(dataset.rows(), 1)
    ]
    found = make_items(rows, dataset.item_type)
    if len(found) != dataset.count:
        has = format_item_count(dataset.count)
        raise UsageError(
            f"dataset {dataset.name} has {has}, found {len(found)}: this is another edition of it"
        )
    return found


@cache
def all_datasets() -> tuple[Dataset, ...]:
    """Every dataset with a name: ours, then those of other packages."""
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
                f"an entry point of parley.datasets holds {dataset!r}, which is no "
                f"parley.datasets.Dataset"
            )
        if found.setdefault((dataset.name, dataset.item_type), dataset) is not dataset:
            raise UsageError(
                f"two datasets of {dataset.item_type.__name__} are called {dataset.name!r}"
            )
    return tuple(found.values())


def datasets_named(name: str, kind: type | None = None) -> list[Dataset]:
    """The datasets of this name, one at most for each type of items."""
    return [each for each in all_datasets() if each.name == name and kind in (None, each.item_type)]


def default_dataset(kind: type | None) -> str | None:
    """What is played on where nothing is said: the bundled samples, if there are any of that
    type."""
    return USUAL if kind is not None and datasets_named(USUAL, kind) else None


def load_items(reference: str, kind: type, columns: Columns | None = None) -> list[Any]:
    """All items of a dataset; a row that does not fit is an error that names it."""
    reference = resolve_reference(reference, kind, bool(columns))
    if not columns:
        for dataset in datasets_named(reference, kind):
            return dataset.items()
    for field in columns or {}:
        if field not in known_columns(kind):
            raise unknown_name(
                f"field of {kind.__name__} in the columns of {reference}:",
                field,
                known_columns(kind),
            )
    rows = list(load_rows(reference, kind))
    if not rows:
        raise UsageError(f"dataset {reference} is empty; wanted {describe_columns(kind)}")
    return make_items(rows, kind, columns)


def resolve_reference(reference: str, kind: type | None, columns: bool = False) -> str:
    """A dataset by name or path. What is both must be said: `./mmlu` is the file or folder,
    `dataset:mmlu` the one by name."""
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
            f"{reference} is a dataset and a {what} here: write ./{reference} for the {what}, or "
            f"{NAMED}{reference} for the dataset"
        )
    return reference


def load_examples(reference: str, kind: type, own: bool = False) -> list[Any]:
    """The worked examples that a dataset brings; of any other source all items, unless only its
    `own` examples will do."""
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
    """How many worked examples a dataset is usually played with, if it says so."""
    reference = resolve_reference(reference, kind)
    return next((dataset.shots for dataset in datasets_named(reference, kind)), None)


def describe_reading(
    reference: str, kind: type, columns: Columns | None = None, unread: bool = False
) -> list[str]:
    """What is odd about how a file is read, in words: another separator than the comma, and what
    looks like a misspelt column in the first row; on request all columns that are not read."""
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
    read = {*item_fields(kind), *((*form.columns, *form.also) if form is not None else ())}
    left = [str(column) or "(a column without a name)" for column in rest if column not in read]
    if unread and left:
        odd.append(f"dataset {reference}: not read: {', '.join(left)}")
    return odd


def load_rows(reference: str, kind: type | None = None) -> Iterator[LocatedRow]:
    """The rows of a file or folder; what is neither, and looks like a name, is an unknown one."""
    path = Path(reference).expanduser()
    if not is_dataset_path(reference) and not path.exists():
        there = {each.name for each in all_datasets() if kind in (None, each.item_type)}
        wrong = unknown_name("dataset", reference, there)
        raise UsageError(f"{wrong}; or name a file or a folder: ./{reference}")
    yield from read_rows(path)


def item_type_of_dataset(reference: str, columns: Columns | None = None) -> type:
    """The type of a dataset's items, by its name or by its first row."""
    reference = resolve_reference(reference, None, bool(columns))
    kinds = [] if columns else [dataset.item_type for dataset in datasets_named(reference)]
    if not kinds:
        first = next(load_rows(reference), None)
        if first is None:
            raise UsageError(f"dataset {reference} is empty")
        if not isinstance(first.row, Mapping):
            raise UsageError(
                f"{first.where}: wanted an object with named fields, "
                f"found {type(first.row).__name__}; say whose items these are: --task TASK"
            )
        row = rename_columns(first.row, columns, first.where) if columns else first.row
        kinds = item_types_of_row(row)
        if not kinds:
            raise no_form_error(first._replace(row=row))
    if len(kinds) > 1:
        several = ", ".join(kind.__name__ for kind in kinds)
        raise UsageError(f"dataset {reference} can be {several}: say which by --task TASK")
    return kinds[0]
