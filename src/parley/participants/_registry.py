"""Finds participants by the name that a user types, and makes them."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from parley import participants
from parley.errors import UsageError, unknown
from parley.match.protocol import Participant
from parley.participants._model import Model
from parley.providers import _registry as providers
from parley.providers._secrets import expanded
from parley.rules.parameters import parse_value
from parley.rules.task import Task


@dataclass(frozen=True)
class Limits:
    """What a user allows for one model; None where nothing was said."""

    concurrency: int | None = None
    rpm: int | None = None  # requests a minute
    tpm: int | None = None  # tokens a minute, both ways

    @property
    def any(self) -> bool:
        return (self.concurrency or self.rpm or self.tpm) is not None


LIMITS = ("concurrency", "rpm", "tpm")


class Named(NamedTuple):
    """A model as typed: its alias, and PROVIDER/NAME."""

    alias: str
    model: str


def kinds() -> list[str]:
    """The kinds of participants that are no providers."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(participants.__path__)
        if not module.name.startswith("_")
    )


def named(text: str) -> Named:
    """`[ALIAS=]PROVIDER/NAME` taken apart; without an alias the name gives one."""
    head, equals, tail = text.partition("=")
    alias, model = (head, tail) if equals and "/" not in head else ("", text)
    family, slash, name = model.partition("/")
    if not slash or not family or not name:
        raise UsageError(
            f"a model is named [ALIAS=]PROVIDER/NAME, like bot/random or "
            f"vllm/Qwen/Qwen3-32B; got {text!r}"
        )
    if family not in kinds() and not providers.known(family):
        raise unknown("provider", family, [*kinds(), *providers.names()])
    if not alias and model == text:
        alias = usual_alias(family, name)
    if not re.fullmatch(r"[\w.@+-]+", alias):
        raise UsageError(
            f"an alias is made of letters, digits and . _ - + @; got {alias!r} (give one: "
            f"-m ALIAS={model})"
        )
    return Named(alias, model)


def usual_alias(family: str, name: str) -> str:
    """What a model is called where nobody gave it a name: its own, without the folders or modules
    before it."""
    if "://" in name:
        with suppress(ValueError):
            parts = urlsplit(name)
            pieces = [parts.hostname or "", str(parts.port or ""), *parts.path.split("/")]
            return re.sub(r"[^\w.@+-]+", "-", "-".join(filter(None, pieces))) or name
    last = name.rstrip("/").rpartition("/")[2]
    return last.rpartition(":")[2] if family == "python" else last.replace(":", "-")


def make(
    model: str | Callable[..., Any], options: Mapping[str, Any], task: type[Task], where: str
) -> Participant:
    """The participant that a model's name, or a function, stands for."""
    family, _, name = ("python", "", "") if callable(model) else model.partition("/")
    served = family not in kinds()
    options = {
        key: value if served and key == "base_url" else drawn(value)
        for key, value in options.items()
    }
    # whoever seats the participant sees to these
    options = {key: value for key, value in options.items() if key not in LIMITS}
    if "api_key" in options:
        raise UsageError(
            f"{where}: keys come from the environment; name the variable: -M "
            f"{where}.api_key_env=NAME"
        )
    if callable(model):
        participant: Participant = import_module("parley.participants.python").Python(
            model, options, where
        )
    elif served:
        participant = Model.made(family, expanded(name), options)
    else:  # an address is taken as written, so that errors can name it so
        name = name if family == "http" else expanded(name)
        participant = import_module(f"parley.participants.{family}").make(name, options, task)
    return participant


def drawn(value: Any) -> Any:
    """An option with every `${NAME}` in it replaced."""
    return expanded(value, private=True) if isinstance(value, str) else value


def limit(options: Mapping[str, Any], name: str, where: str) -> int | None:
    """A bound that a model's options set, where they do."""
    if (given := options.get(name)) is None:
        return None
    found: int = parse_value(given, int, f"{where}.{name}")
    if found < 1:
        raise UsageError(f"{where}.{name} must be at least 1, not {found}")
    return found
