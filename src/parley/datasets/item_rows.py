"""Make items of rows with the fields of their type, and restore them from a run's file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from parley.errors import UsageError, describe_type, unknown_name
from parley.rules.parameters import parse_value
from parley.rules.task import Task
from parley.tables import plural

MAPPINGS = (dict, Mapping)
SEQUENCES = (list, tuple, Sequence)


def item_from_row(row: Any, kind: type, where: str, number: int | str) -> Any:
    """Make an item of a row that has its fields. Without an `id`, its number or name is the id."""
    wanted = item_fields(kind)
    if not isinstance(row, Mapping):
        raise UsageError(
            f"{where}: expected an object with {', '.join(wanted)}, found {describe_type(row)}"
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
                    f"{where} has no value for {', '.join(missing)}; its columns are "
                    f"{', '.join(row)}",
                    *misspelt_columns(row, wanted),
                ]
            )
        )
    hints = field_hints(kind)
    values = {
        name: read_field(row[name], hints.get(name, Any), f"{where}.{name}")
        for name in wanted
        if name in row
    }
    item = make_dataclass(kind, values, where)
    if halved := find_lone_surrogate(item):
        raise UsageError(f"{where}: {halved}")
    return item


def item_from_record(row: Any, kind: type, where: str) -> Any:
    """Restore an item from a run's file. Lists, tuples, mappings and dataclasses are made again
    according to the types of its fields."""
    missing = [
        name
        for name, field in item_fields(kind).items()
        if field.init and field.default is MISSING and field.default_factory is MISSING
    ]
    if not isinstance(row, Mapping) or (missing := [name for name in missing if name not in row]):
        raise UsageError(
            f"{where} is not a {kind.__name__}, because these fields are missing: "
            f"{', '.join(missing)}"
        )
    return restore_value(row, kind, where)


def read_field(value: Any, kind: Any, where: str) -> Any:
    """Parse the value of a row as the declared type of a field, including nested lists, mappings
    and dataclasses."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return (
            parse_value(value, kind, where)
            if inner[0] in (int, float, str, bool)
            else read_field(value, inner[0], where)
        )
    if origin in (Union, UnionType):
        if (value is None and NoneType in inner) or type(value) in inner:
            return value
        faults = list[UsageError]()
        for option in (each for each in inner if each is not NoneType):
            try:
                return read_field(value, option, where)
            except UsageError as wrong:
                faults.append(wrong)
        raise faults[0]
    shape = origin or kind
    if is_dataclass(shape) and isinstance(shape, type):
        if not isinstance(value, Mapping):
            raise UsageError(f"{where} must be an object, not {value!r:.80}")
        hints = field_hints(shape)
        known = [name for name, field in item_fields(shape).items() if field.init]
        for name in value:
            if name not in known:
                raise unknown_name(f"field of {where}:", str(name), known)
        values = {
            name: read_field(each, hints.get(name, Any), f"{where}.{name}")
            for name, each in value.items()
        }
        return make_dataclass(shape, values, where)
    if shape in MAPPINGS:
        if not isinstance(value, Mapping):
            raise UsageError(f"{where} must be an object, not {value!r:.80}")
        of_key, of_value = inner or (Any, Any)
        return {
            read_field(key, of_key, where): read_field(each, of_value, f"{where}.{key}")
            for key, each in value.items()
        }
    if shape in SEQUENCES:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise UsageError(f"{where} must be a list, not {value!r:.80}")
        kinds = kinds_of_parts(shape, inner, len(parts))
        if len(kinds) != len(parts):
            raise UsageError(
                f"{where} must be a list of {plural(len(kinds), 'value')}, not {value!r:.80}"
            )
        found = [read_field(part, each, where) for part, each in zip(parts, kinds, strict=True)]
        return found if shape is list else tuple(found)
    return parse_value(value, kind, where)


def restore_value(value: Any, kind: Any, where: str) -> Any:
    """Restore a JSON value to its declared type. A value that does not fit the type stays as it is,
    because it was never checked before."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return restore_value(value, inner[0], where)
    if origin in (Union, UnionType):
        return restore_value(value, next((k for k in inner if has_shape(value, k)), Any), where)
    shape = origin or kind
    if not has_shape(value, kind):
        return value
    if is_dataclass(shape) and isinstance(shape, type):
        hints, known = field_hints(shape), item_fields(shape)
        return make_dataclass(
            shape,
            {
                name: restore_value(each, hints.get(name, Any), f"{where}.{name}")
                for name, each in value.items()
                if name in known and known[name].init
            },
            where,
        )
    if shape in MAPPINGS:
        of_key, of_value = inner or (Any, Any)
        as_key = of_key if of_key in (int, float) else str
        return {as_key(key): restore_value(each, of_value, where) for key, each in value.items()}
    if shape in SEQUENCES:
        kinds = kinds_of_parts(shape, inner, len(value))
        kinds = kinds if len(kinds) == len(value) else (Any,) * len(value)
        found = [restore_value(part, each, where) for part, each in zip(value, kinds, strict=True)]
        return found if shape is list else tuple(found)
    return value


def has_shape(value: Any, kind: Any) -> bool:
    """Whether a JSON value can have a type: an object a dataclass or mapping, a list a list or
    tuple, a scalar anything else."""
    shape = get_origin(kind) or kind
    if is_dataclass(shape) or shape in MAPPINGS:
        return isinstance(value, Mapping)
    if shape in SEQUENCES:
        return isinstance(value, list)
    return not isinstance(value, list | Mapping)


def kinds_of_parts(shape: Any, inner: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The types of a sequence's elements: one for each, or one for all of them."""
    if not inner:
        return (Any,) * count
    return inner if shape is tuple and ... not in inner else (inner[0],) * count


def field_hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields; empty if annotations use undefined names."""
    try:
        return get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):
        return {}


def make_dataclass(kind: type, values: Mapping[str, Any], where: str) -> Any:
    """Make a dataclass with these values; its errors get the place in front."""
    try:
        return kind(**values)
    except (AttributeError, TypeError, ValueError) as wrong:
        raise UsageError(f"{where}: {wrong}") from None


def find_unstorable(item: Any) -> str | None:
    """Describe a field that a store cannot keep unchanged; None if there is none."""
    for name, value in asdict(item).items():
        try:
            json.dumps(value)
        except (AttributeError, TypeError, ValueError) as wrong:
            return (
                f"{name} cannot be stored with a run ({wrong}): use text, numbers, lists, "
                "mappings or dataclasses"
            )
    return find_lone_surrogate(item)


def find_lone_surrogate(item: Any) -> str | None:
    """Describe a field with a lone surrogate, which no file can store; None if there is none."""
    for name, value in asdict(item).items():
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as wrong:
            half = f"\\u{ord(wrong.object[wrong.start]):04x}"
            return (
                f"{name} contains half of a Unicode surrogate pair ({half}), which is not a "
                "valid character: write the whole character, or remove it"
            )
    return None


def item_fields(kind: Any) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(kind)}


def misspelt_columns(columns: Iterable[Any], known: Iterable[str]) -> list[str]:
    """Notes on columns that are not read and look like a missing one."""
    found = list(map(str, columns))
    missing = [name for name in known if name not in found]
    near = {
        column: get_close_matches(column.strip().lower(), missing, n=1, cutoff=0.75)
        for column in found
    }
    return [
        f"Parley does not use the column {column!r}; did you mean {names[0]!r}?"
        for column, names in near.items()
        if names and column not in known
    ]


def item_type_of_task(task: type[Task]) -> type:
    if task.items is None:
        raise UsageError(
            f"the task {task.name} has no items, so it does not use a dataset: remove --dataset"
        )
    return task.items.type
