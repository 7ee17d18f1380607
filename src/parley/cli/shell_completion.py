"""Shell completion of tasks, runs and models.

Switch it on with `eval "$(_PARLEY_COMPLETE=bash_source parley)"` (or `zsh_source`, `fish_source`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from parley.errors import ParleyError


def complete_tasks(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Names of tasks, and files that may hold one."""
    from parley.config.task_catalogue import task_names

    if "/" in typed or typed.startswith("."):
        return [CompletionItem(typed, type="file")]
    files = [str(path) for ending in ("*.py", "*.yaml", "*.yml") for path in Path().glob(ending)]
    return matching([*task_names(), *sorted(files)], typed)


def complete_runs(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Names and ids of runs in the store."""
    from parley.store import open_store
    from parley.store.types import RunInfo

    found = ["last"]
    try:
        for run in open_store(context.params.get("store")).runs():
            if isinstance(run, RunInfo):
                found += [run.config.name] if run.config.name else []
            found.append(run.ref.id)
    except ParleyError:  # completion must not print errors
        return []
    return matching(found, typed)


def complete_models(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Aliases of models.yaml, the bots of the task, and providers; also after `ALIAS=`."""
    from parley.config.models_file import shared_models
    from parley.config.task_catalogue import task_class
    from parley.participants._registry import participant_kinds
    from parley.participants.bot import ANYWHERE
    from parley.providers import _registry as providers

    before, equals, _ = typed.rpartition("=")
    found, bots = list[str](), dict.fromkeys(ANYWHERE)
    with suppress(ParleyError):
        found += shared_models()
    with suppress(ParleyError):
        bots |= dict.fromkeys(task_class(str(context.params.get("task"))).bots)
    found += [f"bot/{name}" for name in bots]
    families = (*participant_kinds(), *providers.provider_names())
    found += [f"{name}/" for name in families if name != "bot"]
    return matching((f"{before}{equals}{each}" for each in found), typed)


def matching(names: Iterable[str], typed: str) -> list[CompletionItem]:
    """The names that begin with what was typed, each once."""
    return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(typed)]
