"""Parse values that users type into the types that dataclasses and functions declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import Parameter, signature
from math import isfinite
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from parley.errors import UsageError, unknown_name

T = TypeVar("T")


def build_dataclass(cls: type[T], given: Mapping[str, Any], what: str, owner: str) -> T:
    """Make a dataclass from these values, which may be strings from a command line."""
    known = {field.name for field in fields(cls) if field.init}  # type: ignore[arg-type]
    values = parse_values(get_type_hints(cls, include_extras=True), known, given, what, owner)
    try:
        return cls(**values)
    except (TypeError, ValueError) as wrong:
        raise UsageError(f"{owner}: {wrong}") from None


def literal_options(cls: type) -> dict[str, frozenset[Any]]:
    """The options of every field declared as a Literal."""
    try:
        hints = get_type_hints(cls)
    except (TypeError, NameError):  # annotations with undefined names
        return {}
    return {
        name: frozenset(get_args(hint))
        for name, hint in hints.items()
        if get_origin(hint) is Literal
    }


def parse_keywords(
    function: Callable[..., Any], given: Mapping[str, Any], what: str, owner: str
) -> dict[str, Any]:
    """Parse values as keyword arguments of a function, by its annotations. Its first parameter is
    excluded."""
    known = {
        name
        for name, at in list(signature(function).parameters.items())[1:]
        if at.kind is not Parameter.VAR_KEYWORD
    }
    try:
        hints = get_type_hints(function, include_extras=True)
    # a partial, or annotations with undefined names: values stay as given
    except (TypeError, NameError):
        hints = {}
    return parse_values(hints, known, given, what, owner)


def parse_values(
    hints: Mapping[str, Any], known: set[str], given: Mapping[str, Any], what: str, owner: str
) -> dict[str, Any]:
    """Parse values by the declared types of their names. The error for an unknown name suggests
    the nearest one."""
    for name in given:
        if name not in known:
            raise unknown_name(f"{what} {owner}:", name, known)
    return {
        name: parse_value(value, hints.get(name, Any), f"{owner}.{name}")
        for name, value in given.items()
    }


def parse_value(value: Any, kind: Any, where: str) -> Any:
    """Parse a value, or a string that stands for it, as the declared type of a parameter.

    `Annotated[float, (0, 1)]` sets limits.
    """
    origin, options = get_origin(kind), get_args(kind)
    if origin is Annotated:
        found = parse_value(value, options[0], where)
        for low, high in (
            each for each in options[1:] if isinstance(each, tuple) and found is not None
        ):
            if not low <= found <= high:
                raise UsageError(f"{where} must be from {low} to {high}, not {value}")
        return found
    if origin is Literal:
        for option in options:
            if value == option or str(value) == str(option):
                return option
        raise unknown_name(f"value of {where}:", str(value), map(str, options))
    if origin in (Union, UnionType):
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        return parse_value(
            value, next(option for option in options if option is not type(None)), where
        )
    if origin in (tuple, list):
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise UsageError(f"{where} must be a list, not {value!r}")
        kinds = (options[0],) * len(parts) if origin is list or ... in options else options
        if len(kinds) != len(parts):
            raise UsageError(f"{where} must be a list of {len(kinds)} values, not {value!r}")
        return tuple(
            parse_value(part, each, where) for part, each in zip(parts, kinds, strict=True)
        )
    return parse_scalar(value, kind, where)


def parse_scalar(value: Any, kind: Any, where: str) -> Any:
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(
        kind, str(kind)
    )
    if kind is bool:
        word = str(value).lower()
        if word in ("true", "yes", "on", "1", "false", "no", "off", "0"):
            return word in ("true", "yes", "on", "1")
    elif kind is str or kind is Any:
        return value if kind is Any else str(value)
    elif not isinstance(value, bool):
        try:
            number = kind(value)
            if (isinstance(value, str) or number == value) and isfinite(number):
                return number
        except (TypeError, ValueError, OverflowError):
            pass
    raise UsageError(f"{where} must be {wanted}, not {value!r}")
