"""Finds participants by the name that a user types, and makes them."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from parley import participants
from parley.errors import UsageError, unknown_name
from parley.match.protocol import Participant
from parley.participants._model import Model
from parley.providers import _registry as providers
from parley.providers._secrets import expand_references
from parley.rules.parameters import parse_value
from parley.rules.task import Task


@dataclass(frozen=True)
class ModelLimits:
    """The limits that a user sets for one model; None stands for no limit."""

    concurrency: int | None = None
    rpm: int | None = None  # requests a minute
    tpm: int | None = None  # tokens a minute, both ways

    @property
    def any(self) -> bool:
        return (self.concurrency or self.rpm or self.tpm) is not None


LIMITS = ("concurrency", "rpm", "tpm")


class ModelName(NamedTuple):
    """A model as typed: its alias, and PROVIDER/NAME."""

    alias: str
    model: str


@cache
def participant_kinds() -> list[str]:
    """The kinds of participants that are not models of a provider."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(participants.__path__)
        if not module.name.startswith("_")
    )


def parse_model_name(text: str) -> ModelName:
    """Parse `[ALIAS=]PROVIDER/NAME`. Without an alias the name gives one."""
    head, equals, tail = text.partition("=")
    alias, model = (head, tail) if equals and "/" not in head else ("", text)
    family, slash, name = model.partition("/")
    if not slash or not family or not name:
        raise UsageError(
            "a model must be given as [ALIAS=]PROVIDER/NAME, like bot/random or "
            f"vllm/Qwen/Qwen3-32B, not {text!r}"
        )
    if family not in participant_kinds() and not providers.is_provider(family):
        raise unknown_name("provider", family, [*participant_kinds(), *providers.provider_names()])
    if not alias and model == text:
        alias = default_alias(family, name)
    if not re.fullmatch(r"[\w.@+-]+", alias):
        raise UsageError(
            f"an alias may contain only letters, digits and . _ - + @, not {alias!r}: choose "
            f"one with -m ALIAS={model}"
        )
    return ModelName(alias, model)


def default_alias(family: str, name: str) -> str:
    """The alias of a model without one: its name, without the folders or modules before it."""
    if "://" in name:
        with suppress(ValueError):
            parts = urlsplit(name)
            pieces = [parts.hostname or "", str(parts.port or ""), *parts.path.split("/")]
            return re.sub(r"[^\w.@+-]+", "-", "-".join(filter(None, pieces))) or name
    last = name.rstrip("/").rpartition("/")[2]
    return last.rpartition(":")[2] if family == "python" else last.replace(":", "-")


def make_participant(
    model: str | Callable[..., Any], options: Mapping[str, Any], task: type[Task], where: str
) -> Participant:
    """Make the participant for a model's name or a function."""
    family, _, name = ("python", "", "") if callable(model) else model.partition("/")
    served = family not in participant_kinds()
    options = {
        key: value if served and key == "base_url" else expand_option(value)
        for key, value in options.items()
    }
    # limits are applied around the participant, in `runs/seats.py`
    options = {key: value for key, value in options.items() if key not in LIMITS}
    if "api_key" in options:
        raise UsageError(
            f"{where}.api_key cannot be set, because Parley reads API keys only from "
            f"environment variables: name the variable with -M {where}.api_key_env=NAME"
        )
    if callable(model):
        participant: Participant = import_module("parley.participants.python").Python(
            model, options, where, is_alias=True
        )
    elif served:
        participant = Model.from_options(family, expand_references(name), options)
    else:  # an address is taken as written, so that errors can name it so
        name = name if family == "http" else expand_references(name)
        participant = import_module(f"parley.participants.{family}").make(name, options, task)
    return participant


def expand_option(value: Any) -> Any:
    """Replace every `${NAME}` in an option."""
    return expand_references(value, private=True) if isinstance(value, str) else value


def read_limit(options: Mapping[str, Any], name: str, where: str) -> int | None:
    """Read a limit from a model's options."""
    if (given := options.get(name)) is None:
        return None
    found: int = parse_value(given, int, f"{where}.{name}")
    if found < 1:
        raise UsageError(f"{where}.{name} must be at least 1, not {found}")
    return found
