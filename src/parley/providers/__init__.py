"""Where models are served: one file a provider, found by its name; others come through `parley.providers`."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, cast

from parley.errors import unknown
from parley.parameters import fitted
from parley.providers.keys import expanded
from parley.providers.protocol import Provider
from parley.providers.traits import Traits, traits_of

COMMON = ("concurrency", "rpm", "tpm", "no_system_role", "system")  # what every model takes, whoever serves it
GROUP = "parley.providers"
FAMILY = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def names() -> list[str]:
    """The providers that can be named before the slash of a model."""
    own = {module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)}
    return sorted({family for family in own if own_class(family)} | {entry.name for entry in entry_points(group=GROUP)})


def known(family: str) -> bool:
    """Whether there is such a provider."""
    return bool(entry_points(group=GROUP, name=family)) or own_class(family) is not None


def own_class(family: str) -> Any:
    """The class of a file here that is a provider: one whose `Provider` has options. What providers share has none."""
    name = f"{__name__}.{family.replace('-', '_')}"
    if not FAMILY.fullmatch(family) or find_spec(name) is None:
        return None
    found = getattr(import_module(name), "Provider", None)
    return found if is_dataclass(found) else None


def class_of(family: str) -> Any:
    """The class that serves a family of models."""
    for entry in entry_points(group=GROUP, name=family):
        return entry.load()
    if (found := own_class(family)) is None:
        raise unknown("provider", family, names())
    return found


def traits(family: str) -> Traits:
    """What the provider of a family says of itself."""
    return traits_of(class_of(family))


def make(family: str, name: str, options: Mapping[str, Any]) -> Provider:
    """The provider of a family for one model; its options are the fields of its class."""
    provider = class_of(family)
    taken = {each.name for each in fields(provider) if each.init and each.name != "name"}
    for option in options:
        if option not in taken:
            raise unknown(f"option of {family}/{name}:", option, {*taken, *COMMON})
    given = {**options, "name": name}
    if isinstance(base := options.get("base_url"), str) and not getattr(provider, "references", False):
        given["base_url"] = expanded(base, private=True)
    return cast(Provider, fitted(provider, given, "option of", f"{family}/{name}"))
