"""Where models are served: one file a provider, found by its name; others come through `parley.providers`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from parley.errors import unknown
from parley.parameters import fitted
from parley.providers.keys import expanded
from parley.providers.protocol import Provider

COMMON = ("concurrency", "rpm", "tpm", "no_system_role", "system")  # what every model takes, whoever serves it
NOT_PROVIDERS = {"protocol", "transport", "patience", "spending", "keys", "endpoint", "capabilities", "schemas", "responses"}


def names() -> list[str]:
    """The providers that can be named before the slash of a model."""
    own = {module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)} - NOT_PROVIDERS
    return sorted(own | {entry.name for entry in entry_points(group="parley.providers")})


def class_of(family: str) -> Any:
    """The class that serves a family of models."""
    if family not in names():
        raise unknown("provider", family, names())
    for entry in entry_points(group="parley.providers", name=family):
        return entry.load()
    return import_module(f"parley.providers.{family.replace('-', '_')}").Provider


def make(family: str, name: str, options: Mapping[str, Any]) -> Provider:
    """The provider of a family for one model; its options are the fields of its class."""
    provider = class_of(family)
    known = {each.name for each in fields(provider) if each.init and each.name != "name"}
    for option in options:
        if option not in known:
            raise unknown(f"option of {family}/{name}:", option, {*known, *COMMON})
    given = {**options, "name": name}
    if isinstance(base := options.get("base_url"), str) and not getattr(provider, "references", False):
        given["base_url"] = expanded(base, private=True)
    return cast(Provider, fitted(provider, given, "option of", f"{family}/{name}"))
