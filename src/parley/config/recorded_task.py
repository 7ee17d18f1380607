"""The task of a run on record: found by its name, or in a file that the user names.

A run's file never chooses code to load. Where the record names a file of the user's, it is loaded
only to go on with the run, only from the folder of the run or the current one, and only if its
source, compared without running it, is the one on record.
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
    """The file of a task that is named by its path, also as FILE.py:CLASS."""
    return Path(reference.rpartition(":")[0] if ".py:" in reference else reference).expanduser()


def source_facts(reference: str) -> dict[str, Any]:
    """What the identity of a run says of a task that is a file: a digest of its Python source."""
    found = task_source_digest(reference) if is_task_path(reference) else ""
    return {"source": found} if found else {}


def task_source_digest(reference: str) -> str:
    """A digest of the Python source that a task file brings, empty if it brings none; nothing is
    run.

    A YAML file brings Python only where its metric is a function of a module beside it.
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
    """The class to check a record with: installed, or in the file that the user names."""
    if task_file is None and is_task_path(reference):
        raise UsageError(
            f"the run played a task in a file ({reference}), and a run never chooses the code to "
            f"load: name the file yourself, --task {reference}"
        )
    return task_class(task_file or reference)


def task_to_resume(
    reference: str, identity: Mapping[str, Any], task_file: str | None = None
) -> type[Task]:
    """The class to go on with: Python in a file on record is loaded only if it has not changed."""
    path = path_of_task(reference)
    if task_file is None and is_task_path(reference) and not path.is_file():
        raise UsageError(f"there is no file {path}, which has the task of this run: --task FILE")
    now = task_source_digest(reference) if is_task_path(reference) else ""
    changed = is_task_path(reference) and (now == ELSEWHERE or identity.get("source", "") != now)
    if task_file is None and changed:
        raise UsageError(
            f"the source of {reference} is not the one that this run began with: if only its "
            f"bots or analyses have changed and you trust the file, name it yourself, --task "
            f"{reference}; under another rule start a new run (what was played stays in its file)"
        )
    return task_class(task_file or reference)


def check_recorded_paths(
    config: Config, run: str, allowed: Allowed, task_named: bool = False
) -> None:
    """Refuse a run file whose task, dataset or parameters name a path outside its folder and the
    current one. A task that the user names is allowed."""
    file = OtherFile(Path(run))
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
