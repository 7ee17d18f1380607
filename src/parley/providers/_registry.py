"""Finds providers by name and makes them; other packages add theirs with the entry point
`parley.providers`."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from parley import providers
from parley.errors import KeyMissing, UsageError, unknown_name
from parley.match.protocol import Provider
from parley.providers import _plugins as plugins
from parley.providers._env_file import find_setting
from parley.providers._secrets import expand_references
from parley.providers._traits import Traits, traits_of
from parley.rules.parameters import build_dataclass

# the options of every model, whoever serves it
COMMON = ("concurrency", "rpm", "tpm", "no_system_role", "system")
FAMILY = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def provider_names() -> list[str]:
    """The providers that can be named before the slash of a model."""
    own = {
        module.name
        for module in pkgutil.iter_modules(providers.__path__)
        if not module.name.startswith("_")
    }
    return sorted({name.replace("_", "-") for name in own} | plugins.plugin_names())


def is_provider(family: str) -> bool:
    """Whether there is such a provider."""
    return builtin_class(family) is not None or plugins.is_plugin(family)


def builtin_class(family: str) -> Any:
    """The `Provider` of a file here; None if there is no such file."""
    name = f"{providers.__name__}.{family.replace('-', '_')}"
    if not FAMILY.fullmatch(family) or find_spec(name) is None:
        return None
    return import_module(name).Provider


def provider_class(family: str) -> Any:
    """The class that serves a family of models."""
    found = builtin_class(family)
    if plugins.is_plugin(family):
        return plugins.load_plugin(family, taken=found is not None)
    if found is None:
        raise unknown_name("provider", family, provider_names())
    return found


def provider_traits(family: str) -> Traits:
    """The traits of a family's provider."""
    return traits_of(provider_class(family))


def find_traits(family: str) -> Traits:
    """The same, or the usual ones for a family that is no provider, such as `bot`."""
    return provider_traits(family) if is_provider(family) else Traits()


def make_provider(family: str, name: str, options: Mapping[str, Any]) -> Provider:
    """The provider of a family for one model; its options are the fields of its class."""
    provider = provider_class(family)
    refuse_unknown(family, name, options)
    refuse_keyless(traits_of(provider), options)
    refuse_full_path(provider, options)
    given = {**options, "name": name}
    if isinstance(base := options.get("base_url"), str) and not getattr(
        provider, "references", False
    ):
        given["base_url"] = expand_references(base, private=True)
    return cast(Provider, build_dataclass(provider, given, "option of", f"{family}/{name}"))


def refuse_unknown(family: str, name: str, options: Iterable[str]) -> None:
    """Raise an error for an option that is neither a field of the provider's class nor common to
    all models."""
    taken = {
        each.name for each in fields(provider_class(family)) if each.init and each.name != "name"
    }
    for option in options:
        if option not in taken:
            raise unknown_name(f"option of {family}/{name}:", option, {*taken, *COMMON})


def refuse_full_path(provider: Any, options: Mapping[str, Any]) -> None:
    """Raise an error if an address already has the path that the provider appends to it."""
    path, home = getattr(provider, "path", ""), traits_of(provider).home_env
    what, base = (
        ("base_url", options["base_url"])
        if options.get("base_url")
        else (home, find_setting(home) if home else None)
    )
    if path and isinstance(base, str) and base.partition("?")[0].rstrip("/").endswith(path):
        raise UsageError(
            f"{what} must not end with {path}, because Parley adds this ending itself: remove it"
        )


def refuse_keyless(traits: Traits, options: Mapping[str, Any]) -> None:
    """Raise an error if a provider needs a key and there is none; an option may name the variable
    that holds it."""
    if named := options.get("api_key_env"):
        variables: tuple[str, ...] = (str(named),)
    elif traits.key_needed and traits.key_env:
        variables = (*traits.key_env_first, traits.key_env)
    else:
        return
    if not any(find_setting(variable) for variable in variables):
        raise KeyMissing(
            f"no API key found: set {' or '.join(variables)} in the environment or in .env"
        )
