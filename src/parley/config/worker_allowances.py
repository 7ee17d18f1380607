"""What workers may use because the user who starts them has configured a run so.

A worker does not trust the record of a run: it may come from somebody else. The process that
created or resumed the run has checked all of it, or its user typed it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from parley.config.recorded_task import path_of_task
from parley.config.task_catalogue import is_task_path
from parley.config.trust import host_of, is_there, names_path, places_of, texts_in
from parley.providers import _registry as providers
from parley.providers._secrets import REFERENCE, expand_references
from parley.store.config import Config


def list_allowances(config: Config) -> list[str]:
    """The flags `--allow-host`, `--allow-env` and `--allow-path` for a run."""
    models = config.live_models.values()
    hosts = {host for options in models for host in hosts_of(options)}
    names = {name for options in models for name in variables_of(options)}
    found = [("--allow-host", host) for host in sorted(hosts)]
    found += [("--allow-env", name) for name in sorted(names)]
    found += [("--allow-path", path) for path in sorted(set(paths_of(config)))]
    return [word for pair in found for word in pair]


def hosts_of(options: Mapping[str, Any]) -> Iterator[str]:
    """The hosts that a model's key is sent to, besides its provider's own."""
    family, _, name = str(options["model"]).partition("/")
    address = options.get("base_url") or (name if family == "http" else None)
    if address is None and options.get("api_key_env") and providers.is_provider(family):
        address = os.environ.get(providers.provider_traits(family).home_env or "")
    if address and (host := host_of(expand_references(str(address)))):
        yield host


def variables_of(options: Mapping[str, Any]) -> Iterator[str]:
    """The environment variables that the options of a model name."""
    for _, text in texts_in(dict(options)):
        yield from REFERENCE.findall(text)
    if options.get("api_key_env"):
        yield str(options["api_key_env"])


def paths_of(config: Config) -> Iterator[str]:
    """The paths and modules outside the current folder that a run uses."""
    texts = [text for _, text in texts_in(config.params)]
    if config.dataset:
        texts.append(expand_references(config.dataset))
    if config.evolve is not None:
        texts += [arm.retriever.removeprefix("hf/") for arm in config.evolve.arms.values()]
    paths = [text for text in texts if text.strip() and (names_path(text) or is_there(text))]
    if is_task_path(config.task):
        paths.append(str(path_of_task(config.task)))
    for options in config.live_models.values():
        family, _, name = str(options["model"]).partition("/")
        if family == "python":
            yield name.partition(":")[0]
        elif family == "scripted":
            paths.append(name)
    here = Path.cwd().resolve()
    for path in paths:
        yield from (str(each) for _, each in places_of(path) if not each.is_relative_to(here))
