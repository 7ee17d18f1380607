"""Providers of other packages, from the entry-point group `parley.providers`. They are checked when
they are loaded."""

from __future__ import annotations

import inspect
import sys
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

from parley.errors import ProviderBroken
from parley.providers._traits import traits_of

GROUP = "parley.providers"
PAGE = 'see the docs page "Write a provider"'


@lru_cache(maxsize=1)
def plugins_in(folders: tuple[str, ...]) -> EntryPoints:
    """The providers of other packages. Looking for them takes long, because the metadata of all
    packages is read; others are found only in other folders."""
    return entry_points(group=GROUP)


def plugin_names() -> set[str]:
    """The names of all providers of other packages."""
    return {entry.name for entry in plugins_in(tuple(sys.path))}


def is_plugin(family: str) -> bool:
    """Whether another package has such a provider."""
    return family in plugin_names()


def load_plugin(family: str, taken: bool) -> Any:
    """Load and check the class of another package; `taken`: Parley has its own provider of that
    name."""
    entries = [entry for entry in plugins_in(tuple(sys.path)) if entry.name == family]
    packages = ", ".join(sorted({package_of(entry) for entry in entries}))
    if taken:
        raise plugin_error(
            family,
            packages,
            "Parley has its own provider of that name",
            "rename the provider in the package",
        )
    if len({entry.value for entry in entries}) > 1:
        raise plugin_error(
            family,
            packages,
            "several packages provide a provider of that name",
            "uninstall all but one",
        )
    try:
        found = entries[0].load()
    except Exception as wrong:  # a module of others may raise anything on import
        said = (
            str(wrong)
            if isinstance(wrong, ImportError | AttributeError) and str(wrong)
            else f"{type(wrong).__name__}: {wrong}"
        )
        raise plugin_error(family, packages, said, "fix the package or uninstall it") from None
    if fault := describe_lack(found):
        raise plugin_error(family, packages, f"{entries[0].value} {fault}", PAGE)
    return found


def plugin_error(family: str, packages: str, why: str, what_to_do: str) -> ProviderBroken:
    return ProviderBroken(family, f"{why} (package {packages}); {what_to_do}")


def package_of(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def describe_lack(found: Any) -> str:
    """What a class lacks to be a provider; empty if it is one."""
    if not isinstance(found, type) or not is_dataclass(found):
        return "must be a dataclass whose fields are the options of the provider"
    if not any(each.name == "name" and each.init for each in fields(found)):
        return "must have the field `name: str`, the NAME in PROVIDER/NAME"
    for method, form in {"complete": "(self, request) -> Reply", "close": "(self) -> None"}.items():
        given = getattr(found, method, None)
        if not callable(given):
            return f"must have the method `async def {method}{form}`"
        if not inspect.iscoroutinefunction(inspect.unwrap(given)):
            return f"has a `{method}` that is not async: write `async def {method}{form}`"
    traits = traits_of(found)
    if traits.key_needed and not traits.key_env:
        return "sets key_needed but not key_env, the variable that holds the key"
    return ""
