"""Providers that other packages bring through the entry-point group `parley.providers`, looked at
when they are loaded."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from parley.errors import ProviderBroken
from parley.providers._traits import traits_of

GROUP = "parley.providers"
PAGE = 'see the docs page "Write a provider"'


def plugin_names() -> set[str]:
    """The providers that packages say they bring."""
    return {entry.name for entry in entry_points(group=GROUP)}


def is_plugin(family: str) -> bool:
    """Whether a package says that it brings such a provider."""
    return bool(entry_points(group=GROUP, name=family))


def load_plugin(family: str, taken: bool) -> Any:
    """The class that a package brings for a family, once it is found to be one; `taken` is a name
    of Parley's own."""
    entries = list(entry_points(group=GROUP, name=family))
    packages = ", ".join(sorted({package_of(entry) for entry in entries}))
    if taken:
        raise plugin_error(
            family,
            packages,
            "Parley has a provider of that name itself",
            "give it another name there",
        )
    if len({entry.value for entry in entries}) > 1:
        raise plugin_error(family, packages, "several packages bring it", "uninstall all but one")
    try:
        found = entries[0].load()
    except Exception as wrong:  # whatever a module of somebody else's does when it is imported
        said = (
            str(wrong)
            if isinstance(wrong, ImportError | AttributeError) and str(wrong)
            else f"{type(wrong).__name__}: {wrong}"
        )
        raise plugin_error(family, packages, said, "mend the package or uninstall it") from None
    if fault := describe_lack(found):
        raise plugin_error(family, packages, f"{entries[0].value} {fault}", PAGE)
    return found


def plugin_error(family: str, packages: str, why: str, what_to_do: str) -> ProviderBroken:
    return ProviderBroken(family, f"{why} (package {packages}); {what_to_do}")


def package_of(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def describe_lack(found: Any) -> str:
    """What a class lacks to be a provider; nothing, if it is one."""
    if not isinstance(found, type) or not is_dataclass(found):
        return "is no dataclass: a provider is one, and its fields are its options"
    if not any(each.name == "name" and each.init for each in fields(found)):
        return (
            "lacks the field `name: str`, which takes what stands behind the slash of PROVIDER/NAME"
        )
    for method, form in {"complete": "(self, request) -> Reply", "close": "(self) -> None"}.items():
        given = getattr(found, method, None)
        if not callable(given):
            return f"lacks the method `async def {method}{form}`"
        if not inspect.iscoroutinefunction(inspect.unwrap(given)):
            return f"has a `{method}` that is not async: write `async def {method}{form}`"
    traits = traits_of(found)
    if traits.key_needed and not traits.key_env:
        return "says key_needed, and not which variable holds the key: add key_env"
    return ""
