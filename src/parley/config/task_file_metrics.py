"""The metric of a task file: BLEU, chrF, or a user's function, tried before the first call."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any

from parley.config.rule_digest import without_comments
from parley.config.task_catalogue import load_task_module
from parley.config.trust import is_module_in
from parley.config.yaml_file import YamlFile, short_value
from parley.errors import TaskError, UsageError
from parley.participants.python import load_function
from parley.store.config import text_digest
from parley.tasks._common.defined import Measure
from parley.tasks._common.overlap import MEASURES, compute_overlap, measure_signatures

TAKEN = ("judge", "improvement")  # metrics of every such task


def read_measure(file: YamlFile, fields: Sequence[str]) -> Measure | None:
    """The metric of a task file, if it has one."""
    name = file.data.get("metric")
    if name is None:
        return None
    with file.errors_at("metric"):
        if name in MEASURES:
            if "reference" not in fields or "language" not in file.data:
                raise UsageError(
                    f"the metric `{name}` needs items with a field `reference`, and the key "
                    "`language` with the language code of the texts"
                )
            language = file.data["language"]
            return Measure(
                name,
                partial(agreement_with_reference, name, language),
                measure_signatures(language),
                language,
            )
        if ":" not in name:
            raise UsageError(
                f"expected {', '.join(MEASURES)} or package.module:function, found {name}"
            )
        if (own := name.rpartition(":")[2].rpartition(".")[2]) in TAKEN:
            raise UsageError(
                f"every task file already has a metric named `{own}`: rename the function"
            )
        function = function_beside(file.path.resolve().parent, name)
        refuse_bad_form(function, name)
        source = source_digest(function, name) or "no-source"
        caution = (
            f"the metric `{name}` has no Python source, so Parley cannot notice when it changes"
        )
        of = partial(call_metric, function, str(file.error(("metric",), name)))
        return Measure(
            own,
            of,
            {"metric": f"{name.replace(':', '.')}@{source}"},
            caution=caution if source == "no-source" else "",
        )


def agreement_with_reference(name: str, language: str, text: str, item: Any) -> float:
    """The overlap of a text with the item's reference."""
    found: float = getattr(compute_overlap(text, item.reference, language), name)
    return found


def function_beside(folder: Path, name: str) -> Callable[..., Any]:
    """The function `module:function` of a file or package in this folder. A function of any other
    package could do anything with a model's text."""

    def load(module: str) -> ModuleType:
        own = (folder / f"{module}.py").resolve()
        if own.is_file() and own.parent == folder:
            return load_task_module(str(own))
        if is_module_in(module, [folder, Path.cwd()]):
            return import_module(module)
        raise UsageError(
            f"{name}: the function must be in the folder of this task file, but the folder has "
            f"no {module}.py: create that file, and import there what you need"
        )

    return load_function(name, "", folder, load)


def refuse_bad_form(function: Callable[..., Any], name: str) -> None:
    """Refuse a function that cannot be called with a text and an item."""
    if inspect.isclass(function):
        raise UsageError(f"{name} is a class: expected a function with the arguments text and item")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{name} must not be async: expected a plain function with the arguments text and item"
        )
    try:
        inspect.signature(function).bind("", None)
    except TypeError as wrong:
        raise UsageError(
            f"{name} must be a function with the arguments text and item: {wrong}"
        ) from None
    except ValueError:
        pass  # its signature is unknown; the trial call will show


def call_metric(function: Callable[..., Any], named: str, text: str, item: Any) -> float | None:
    """The score of a text, from 0 to 1, or None. Anything else is an error that names the
    function."""
    beside = "without an item" if item is None else f"for item {item.id!r}"
    try:
        found = function(text, item)
    except KeyboardInterrupt:
        raise
    except BaseException as wrong:  # it may also call sys.exit
        raise TaskError(f"{named} failed {beside}: {type(wrong).__name__}: {wrong}") from wrong
    if found is None:
        return None
    if not isinstance(found, Real) or not 0 <= float(found) <= 1:  # also refuses nan
        raise TaskError(
            f"{named} returned {short_value(found)} {beside}: expected a number from 0 to 1, or "
            "None if there is no score"
        )
    return float(found)


def source_digest(function: Callable[..., Any], name: str) -> str:
    """A short digest of the files that name and define a function; empty if it has no source."""
    modules = dict.fromkeys([getattr(function, "__module__", ""), name.partition(":")[0]])
    paths = [Path(getattr(sys.modules.get(each or ""), "__file__", None) or "") for each in modules]
    sources = [
        without_comments(path.read_bytes())
        for path in dict.fromkeys(paths)
        if path.suffix == ".py" and path.is_file()
    ]
    return text_digest("\n".join(sources))[:8] if sources else ""
