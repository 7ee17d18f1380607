"""The task of a recorded run: found by its name, or in a file that the user names.

A run's file never decides which code is loaded. If the record names a task file, Parley loads it
only to resume the run, only from the folder of the run or the current one, and only if its source
is the recorded one. The source is compared without running it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parley.config.rule_digest import without_comments
from parley.config.task_catalogue import is_task_path, task_class
from parley.config.trust import Allowed, OtherFile, check_if_path, check_path, texts_in
from parley.errors import UsageError
from parley.providers._secrets import expand_references
from parley.rules.task import Task
from parley.store.config import Config, text_digest

ELSEWHERE = "elsewhere"  # the metric of a YAML task is in a module that is not beside the file


def path_of_task(reference: str) -> Path:
    """The file of a task that is given as a path or as FILE.py:CLASS."""
    return Path(reference.rpartition(":")[0] if ".py:" in reference else reference).expanduser()


def source_facts(reference: str) -> dict[str, Any]:
    """The digest of a task file's Python source, for the identity of a run."""
    found = task_source_digest(reference) if is_task_path(reference) else ""
    return {"source": found} if found else {}


def task_source_digest(reference: str) -> str:
    """A digest of the Python source of a task file, empty if there is none. Nothing is run.

    A YAML file has Python source only if its metric is a function in a module beside it.
    """
    path = path_of_task(reference)
    try:
        if path.suffix == ".py":
            return text_digest(without_comments(path.read_bytes()))
        beside = metric_file(path)
        if beside is None:
            return ""
        return text_digest(without_comments(beside.read_bytes())) if beside.is_file() else ELSEWHERE
    except (OSError, SyntaxError, ValueError):
        return ""


def metric_file(path: Path) -> Path | None:
    """The Python file beside a YAML task that its metric names (`metric: module:function`)."""
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except yaml.YAMLError:
        return None
    metric = data.get("metric") if isinstance(data, dict) else None
    module = str(metric).partition(":")[0] if isinstance(metric, str) and ":" in metric else ""
    return path.parent / f"{module}.py" if module else None


def task_to_read(reference: str, task_file: str | None = None) -> type[Task]:
    """The task class that checks a record: installed, or in the file that the user names."""
    if task_file is None and is_task_path(reference):
        raise UsageError(
            f"the task of this run is Python code in a file ({reference}). Parley does not "
            "execute this file unless you ask for it: if you trust the file, add --task "
            f"{reference}"
        )
    return task_class(task_file or reference)


def task_to_resume(
    reference: str, identity: Mapping[str, Any], task_file: str | None = None
) -> type[Task]:
    """The task class that resumes a run. A recorded Python file is loaded only if unchanged."""
    path = path_of_task(reference)
    if task_file is None and is_task_path(reference) and not path.is_file():
        raise UsageError(
            f"the task file of this run, {path}, does not exist: name the file with --task FILE"
        )
    now = task_source_digest(reference) if is_task_path(reference) else ""
    changed = is_task_path(reference) and (now == ELSEWHERE or identity.get("source", "") != now)
    if task_file is None and changed:
        raise UsageError(
            f"{reference} has changed since this run started. If only its bots or analyses have "
            f"changed and you trust the file, add --task {reference}. If the task's rule has "
            "changed, start a new run; the matches already played stay on record"
        )
    return task_class(task_file or reference)


def check_recorded_paths(
    config: Config, run: str, allowed: Allowed, task_named: bool = False
) -> None:
    """Refuse a run file with a task, a dataset or parameters that name a path outside its folder
    and the current one. A task that the user names is allowed."""
    file = OtherFile(run)
    here = allowed.with_paths([str(Path.cwd())])
    if is_task_path(config.task) and not task_named:
        check_path(file, ("task",), str(path_of_task(config.task)), here)
    if config.dataset:
        check_if_path(file, ("dataset",), expand_references(config.dataset), here)
    for place, text in texts_in(config.params, ("set",)):
        check_if_path(file, place, text, here)
    for name, arm in config.evolve.arms.items() if config.evolve is not None else ():
        model = arm.retriever.removeprefix("hf/")
        check_if_path(file, ("evolve", "arms", name, "retriever"), model, here)
