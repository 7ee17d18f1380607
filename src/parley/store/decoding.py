"""Checks that data read from a record has the expected types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from parley.tables import shorten

NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


def find_misfit(value: Any, kind: Any, at: str) -> str:
    """Describe where a JSON value does not have a type; empty if it does. `at` names the value.

    Types are scalars, `Literal`, unions, lists, dicts with text keys, and `TypedDict`s and
    dataclasses as objects, whose unknown keys are ignored.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return ""
    if origin is NotRequired:
        return find_misfit(value, inner[0], at)
    if origin in (Union, UnionType):
        found = [find_misfit(value, each, at) for each in inner]
        return "" if "" in found else found[0]
    if origin is Literal:
        return "" if value in inner else f"{at} must be {' or '.join(inner)}, not {shorten(value)}"
    if origin in (list, Sequence):
        if not isinstance(value, list):
            return f"{at} must be a list, not {shorten(value)}"
        return _first(find_misfit(each, inner[0], f"{at}.{n}") for n, each in enumerate(value))
    if origin in (dict, Mapping) or is_typeddict(kind) or is_dataclass(kind):
        if not isinstance(value, dict):
            return f"{at} must be an object, not {shorten(value)}"
        if origin is not None:
            return _first(find_misfit(each, inner[1], f"{at}.{key}") for key, each in value.items())
        hints = _fields_of(kind)
        for name, hint in hints.items():
            if name not in value and get_origin(hint) is not NotRequired:
                return f"{at} has no {name!r}"
        known = ((name, hints[name]) for name in value if name in hints)
        return _first(find_misfit(value[name], hint, f"{at}.{name}") for name, hint in known)
    if kind is None or kind is type(None):
        return "" if value is None else f"{at} must be null, not {shorten(value)}"
    return "" if _is_a(value, kind) else f"{at} must be {NAMES[kind]}, not {shorten(value)}"


def _is_a(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is kind


def _first(found: Any) -> str:
    return next(filter(None, found), "")


@cache
def _fields_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
