"""Reads an experiment file; every error names the file, the line and the key."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from parley.config import models_file, trust
from parley.config.evolved_task import evolve_task_class
from parley.config.experiment import Experiment
from parley.config.prompt_overrides import chosen_prompts
from parley.config.task_catalogue import task_class
from parley.config.trust import NOTHING_MORE, Allowed
from parley.config.yaml_file import YamlFile, expand_env, short_value
from parley.datasets.files import is_dataset_path
from parley.errors import UsageError, unknown_name
from parley.memory.feedback import CRITIC
from parley.options import OPTIONS, Given, with_options
from parley.plans.evolve_settings import parse_evolve
from parley.providers._secrets import expand_references
from parley.rules.parameters import parse_values
from parley.rules.task import Task
from parley.store.address_forms import FOLDER, is_address

OTHERS = {"suite": "suites of experiments"}
# keys in which ${NAME} is replaced when the file is read; elsewhere the stored run keeps it
EXPANDED = ("set", *dict.fromkeys(each.place[0] for each in OPTIONS.values() if each.place))
# keys that the schema has by hand; `generated_schema` adds the options
SECTIONS = ("stop", "budget")
STRUCTURES = (
    "kind", "task", "set", "dataset", "models", "contestants", "exclude", "instruments", "prompts",
    "evolve", *SECTIONS,
)  # fmt: skip


# keys of experiments that tasks do not have
EXPERIMENT_KEYS = (
    "task", "set", "dataset", "models", "contestants", "exclude", "instruments", "evolve",
    *SECTIONS,
)  # fmt: skip


def is_yaml_path(task: str) -> bool:
    """Whether the user names a YAML file instead of a task."""
    return task.endswith((".yaml", ".yml"))


def open_experiment(task: str | Path | Task, allowed: Allowed = NOTHING_MORE) -> Experiment:
    """The experiment that begins with a task, or the one in a file."""
    if isinstance(task, Task):
        return Experiment(task.name, instance=task, allowed=allowed)
    if is_yaml_path(str(task)):
        return read_experiment(str(task), allowed)
    return Experiment(str(task), allowed=allowed)


def read_experiment(path: str, allowed: Allowed = NOTHING_MORE) -> Experiment:
    """Read an experiment file. It may use only what files may use by default, or what is
    allowed."""
    file = YamlFile(Path(path))
    if file.data.get("kind") == "task":
        if strange := [key for key in EXPERIMENT_KEYS if key in file.data]:
            raise file.error(
                (strange[0],),
                "this key belongs in an experiment file, but this is a task file (`kind: "
                f"task`). Write a second file with `kind: experiment`, `task: {file.path.name}` "
                f"and `{strange[0]}: …`",
            )
        task_class(path)  # errors in the task come first
        return Experiment(path, allowed=allowed)
    refuse_later(file)
    trust.check_references(file, allowed)
    for key in file.data:
        if key in EXPANDED:
            with file.errors_at(key):
                file.data[key] = expand_env(
                    file.data[key], models_file.experiment_schema()["properties"][key]
                )
    trust.check_parameters(file, allowed)
    trust.check_evolve_paths(file, allowed)
    file.check(models_file.experiment_schema())
    data = file.data
    reference = data["task"]
    if re.search(r"\.(py(:\w+)?|ya?ml)$", reference):
        reference = models_file.relative_to_file(file, reference)
        path = reference.rpartition(":")[0] if ".py:" in reference else reference
        trust.check_path(file, ("task",), path, allowed)
    with file.errors_at("task"):
        task = task_class(reference)
    found = Experiment(reference, params_in(file, task), file=file, allowed=allowed)
    found.evolve = dict(data.get("evolve", {}))
    if found.evolve:
        with file.errors_at("evolve"):
            task = evolve_task_class(task, parse_evolve(found.evolve))
    if "models" in data:
        found.models = models_file.models_in(file, "models", trusted=False)
    if "contestants" in data:
        found.contestants = [
            add_alias(found, alias, "contestants", n) for n, alias in enumerate(data["contestants"])
        ]
    found.exclude = [
        add_alias(found, alias, "exclude", n) for n, alias in enumerate(data.get("exclude", []))
    ]
    roles = [name for name, role in task.roles.items() if role.instrument]
    for role, panel in data.get("instruments", {}).items():
        if role not in roles and role != CRITIC:  # only the plan knows whether it uses a critic
            raise file.error(
                ("instruments", role),
                str(unknown_name(f"instrument role of {task.name}:", role, roles)),
            )
        panel = [panel] if isinstance(panel, str) else panel
        found.instruments[role] = [add_alias(found, alias, "instruments", role) for alias in panel]
    if "adversary" in data:
        data["adversary"] = add_alias(found, data["adversary"], "adversary")
    for address, text in data.get("prompts", {}).items():
        path = models_file.relative_to_file(file, expand_references(text))
        trust.check_path(file, ("prompts", address), path, allowed)
        with file.errors_at("prompts", address):
            found.prompts[address] = read_prompt(path)
            chosen_prompts(task, {address: found.prompts[address]})
    if "dataset" in data:
        with file.errors_at("dataset"):
            found.set_dataset(data["dataset"])
        found.check_dataset_path = partial(trust.check_path, file, ("dataset",), allowed=allowed)
        if is_dataset_path(found.dataset or ""):
            found.dataset = models_file.relative_to_file(file, str(found.dataset))
            path = expand_references(found.dataset)
            trust.check_path(file, ("dataset",), path, allowed)
        else:
            trust.check_if_path(file, ("dataset",), found.dataset or "", allowed)
    if "store" in data:
        if is_address(data["store"]):
            raise file.error(
                ("store",),
                "a file cannot choose a database, because Parley would send your password to it: "
                "give the address by --store or PARLEY_STORE",
            )
        here = allowed.with_paths([os.getcwd()])
        trust.check_path(file, ("store",), data["store"].removeprefix(FOLDER), here)
    found.given = options_in(file)
    return found


def options_in(file: YamlFile) -> dict[str, Given]:
    """The options in a file, each with its line."""
    found = {}
    for name, each in OPTIONS.items():
        inside: Any = file.data
        for key in each.place[:-1]:
            inside = inside.get(key, {})
        if each.place and each.place[-1] in inside:
            found[name] = Given(inside[each.place[-1]], file.place_text(each.place))
    return found


def generated_schema(published: Mapping[str, Any]) -> dict[str, Any]:
    """The published schema of experiment files, with its options generated from `OPTIONS`."""
    frame = {key: published["properties"][key] for key in STRUCTURES}
    frame |= {key: {**frame[key], "properties": {}} for key in SECTIONS}
    return with_options({**published, "properties": frame}, OPTIONS.values())


def refuse_later(file: YamlFile) -> None:
    """Refuse files of another kind, rather than ignore what they say."""
    kind = file.data.get("kind")
    if isinstance(kind, str) and kind in OTHERS:
        raise file.error(
            ("kind",),
            f"this version of Parley does not support {OTHERS[kind]}: expected `kind: "
            f"experiment`, found `kind: {kind}`",
        )
    if "kind" not in file.data and file.data and all(map(is_model_entry, file.data.values())):
        raise file.error(
            (),
            "this is a list of models, not an experiment. An experiment file needs the keys "
            "`kind: experiment`, `task: NAME` and `models: …`. To use these aliases in all "
            "runs, move them to models.yaml and use -m ALIAS",
        )
    if "kind" not in file.data and file.data.keys() & {"writer", "editor", "rubric"}:
        raise file.error(
            (),
            "`kind` is missing: add `kind: task` (this file looks like a task) or "
            "`kind: experiment`",
        )
    if "kind" in file.data and kind != "experiment":
        raise file.error(
            ("kind",), f"expected `kind: experiment` or `kind: task`, found {short_value(kind)}"
        )


def is_model_entry(value: Any) -> bool:
    """Whether a value looks like the entry of a model: {model: PROVIDER/NAME, …}."""
    return isinstance(value, dict) and "model" in value


def params_in(file: YamlFile, task: type[Task]) -> dict[str, Any]:
    """The task's parameters in a file, each checked on its own."""
    params: dict[str, Any] = file.data.get("set", {})
    names = {each.name for each in fields(task) if each.init}  # type: ignore[arg-type]
    hints = get_type_hints(task, include_extras=True)
    for key, value in params.items():
        with file.errors_at("set", key):
            parse_values(hints, names, {key: value}, "parameter of", task.name)
    return dict(params)


def add_alias(found: Experiment, alias: str, *place: str | int) -> str:
    """An alias that a file uses: of one of its own models, of `models.yaml`, or of a model that is
    given in place ([ALIAS=]PROVIDER/NAME)."""
    assert found.file is not None
    with found.file.errors_at(*place):
        if "/" in alias:
            name = found.add_model(alias)
            model = found.models[name]["model"]
            if not isinstance(model, trust.Located):
                marked = trust.Written.at(model, found.file, place)
                found.models[name] = {**found.models[name], "model": marked}
            return name
        found.models.setdefault(alias, models_file.model_of_alias(alias, found.models, found.file))
    return alias


def read_prompt(path: str) -> str:
    """The text of a prompt file."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig").strip("\n")
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"prompt file {path} cannot be read: {wrong}") from None
