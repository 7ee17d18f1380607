"""The Python door: `parley.run` from a script or a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from parley import runs
from parley import store as stores
from parley.catalogue import task_class
from parley.config import Config
from parley.errors import ParleyError, UsageError
from parley.eventloop import finished
from parley.participants import named
from parley.plan.fixed import usual
from parley.result import Result
from parley.task import Task

Models = Mapping[str, Any] | Sequence[Any]


def run(task: str | Path | Task, models: Models, **options: Any) -> Result:
    """Play a task and return its result; the options are those of `run_async`."""
    return finished(run_async(task, models, **options))


async def run_async(
    task: str | Path | Task,
    models: Models,
    *,
    roles: Mapping[str, Any] | None = None,
    items: Sequence[Any] | int | None = None,
    dataset: str | Path | None = None,
    plan: str | None = None,
    repeats: int | None = None,
    seed: int = 0,
    prompts: Mapping[str, str] | None = None,
    standardise: str = "on_error",
    name: str = "",
    store: str | Path | None = None,
    concurrency: int = runs.CONCURRENCY,
    **params: Any,
) -> Result:
    """`parley.run` inside an event loop.

    A task is a name, a path or an instance; its parameters are further keywords. Models are names, functions, or
    {"model": name, option: value} under an alias. A run that is stopped returns its partial result, marked as such.
    """
    if isinstance(task, Task):
        if params:
            raise UsageError(f"a task instance has its parameters already: {', '.join(params)}")
        made, reference = task, task.name
    else:
        reference = str(task)
        made = task_class(reference).configured(params)
    functions: dict[str, Callable[..., Any]] = {}
    table: dict[str, dict[str, Any]] = {}
    contestants = entered(models, table, functions)
    instruments = {role: entered(panel, table, functions) for role, panel in (roles or {}).items()}
    config = Config(
        task=reference,
        params=made.params,
        models=table,
        contestants=contestants,
        instruments=instruments,
        plan=plan or usual(made),
        repeats=made.repeats if repeats is None else repeats,
        seed=seed,
        standardise="always" if standardise == "always" else "on_error",
        prompts=dict(prompts or {}),
        dataset=str(dataset) if dataset is not None else None,
        items=items if isinstance(items, int) else None,
        name=name,
    )
    given = None if items is None or isinstance(items, int) else items
    prepared = runs.prepare(config, task=made, items=given, functions=functions)
    ending = await runs.start(prepared, stores.folder(str(store) if store else None), concurrency=concurrency)
    return judged(ending)


def resume(
    run: str | Path,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    task: Task | None = None,
    store: str | Path | None = None,
    concurrency: int = runs.CONCURRENCY,
) -> Result:
    """Go on where a run stopped; functions, and a task instance, that played must be given again."""
    path = stores.find(str(run), stores.folder(str(store) if store else None))
    return judged(finished(runs.go_on(runs.prepare_again(path, functions, task), path, concurrency=concurrency)))


def judged(ending: runs.Ending) -> Result:
    if ending.state == "failed":
        raise ParleyError(ending.reason)
    return Result(ending.path)


def entered(models: Any, table: dict[str, dict[str, Any]], functions: dict[str, Callable[..., Any]]) -> list[str]:
    """Put models, in any form in which they may be given, into the table; their aliases."""
    if isinstance(models, str) or callable(models):
        models = [models]
    pairs = list(models.items()) if isinstance(models, Mapping) else [(None, model) for model in models]
    aliases = []
    for alias, model in pairs:
        options = dict(model) if isinstance(model, Mapping) else {}
        what = options.pop("model", None) if isinstance(model, Mapping) else model
        if callable(what):
            called = getattr(what, "__name__", type(what).__name__)
            alias = alias or called
            functions[alias] = what
            what = f"python/{getattr(what, '__module__', '?')}:{getattr(what, '__qualname__', called)}"
        elif not isinstance(what, str):
            raise UsageError(f"a model is a name, a function or {{'model': name, …}}, not {what!r}")
        else:
            alias, what = (str(alias), named(what).model) if alias else named(what)
        if table.setdefault(alias, {"model": what, **options}) != {"model": what, **options}:
            raise UsageError(f"two models are called {alias!r}: give each an alias")
        aliases.append(alias)
    return aliases
