"""Which models of a run are called through the batch interface of their provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parley.errors import UsageError
from parley.options import BATCH_CONCURRENCY, CONCURRENCY
from parley.participants._registry import LIMITS, participant_kinds
from parley.providers import _registry as providers
from parley.rules.parameters import parse_value
from parley.store.config import Config


def uses_batch_api(options: Mapping[str, Any]) -> bool:
    """Whether a model is called through the batch interface of its provider."""
    return bool(parse_value(options.get("batch_api") or False, bool, "batch_api"))


def with_batch_api(models: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The models of a run with `--batch`. Bots and people play as usual, and so do models with
    `batch_api=false`. Every other model needs a batch interface."""
    found = {}
    for alias, options in models.items():
        family = str(options["model"]).partition("/")[0]
        if family in participant_kinds() or uses_batch_api(options):
            found[alias] = options
            continue
        if "batch_api" in options:  # it is off; a provider without the option need not know it
            found[alias] = {name: each for name, each in options.items() if name != "batch_api"}
            continue
        if getattr(providers.provider_class(family), "batch_client", None) is None:
            raise UsageError(
                f"--batch needs a batch API for every model, but {alias} ({options['model']}) has "
                f"none that Parley can use: set -M {alias}.batch_api=false to call it without "
                "batches, or remove --batch"
            )
        found[alias] = {**options, "batch_api": True}
    return found


def refuse_missing_batch_api(models: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise an error for a model with `batch_api=true` whose provider has no batch interface."""
    for alias, options in models.items():
        family = str(options["model"]).partition("/")[0]
        if not uses_batch_api(options) or not providers.is_provider(family):
            continue
        if getattr(providers.provider_class(family), "batch_client", None) is None:
            raise UsageError(
                f"{alias} ({options['model']}) has no batch API that Parley can use: remove "
                f"{alias}.batch_api=true, so that it is called without batches"
            )


def concurrency_of(config: Config) -> int:
    """How many matches a run plays at a time. In batches, each match that is not played at the same
    time waits for another batch."""
    if config.concurrency is not None:
        return config.concurrency
    batched = any(map(uses_batch_api, config.live_models.values()))
    return BATCH_CONCURRENCY if batched else CONCURRENCY


def batch_cautions(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Warnings about options that have no effect on batches."""
    return [
        f"{alias}.{name} has no effect, because {alias} is called through the batch API of its "
        "provider"
        for alias, options in models.items()
        if uses_batch_api(options)
        for name in LIMITS
        if options.get(name) is not None
    ]
