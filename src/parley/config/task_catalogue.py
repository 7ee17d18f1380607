"""Finds tasks: in this package, in other packages, and in files of the user's."""

from __future__ import annotations

import pkgutil
import sys
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import EntryPoints, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from parley import tasks
from parley.errors import (
    ParleyError,
    TaskError,
    UsageError,
    describe_exception,
    locate_exception,
    unknown_name,
)
from parley.rules.task import Task

if TYPE_CHECKING:
    from parley.store.types import RunInfo


GROUP = "parley.tasks"


def builtin_names() -> set[str]:
    """The tasks of this package."""
    return {
        module.name
        for module in pkgutil.iter_modules(tasks.__path__)
        if not module.name.startswith("_")
    }


def task_names() -> list[str]:
    """The tasks that can be played by name."""
    return sorted(builtin_names() | {entry.name for entry in entry_points(group=GROUP)})


def installed_tasks() -> tuple[dict[str, type[Task]], list[str]]:
    """The tasks that can be played by name, and what is wrong with those that cannot."""
    found, faults, own = dict[str, type[Task]](), list[str](), builtin_names()
    entries = entry_points(group=GROUP)  # one look at all packages: it is slow
    for name in sorted(own | entries.names):
        try:
            found[name] = task_class(name)
        except ParleyError as wrong:
            faults.append(str(wrong))
        if name in own and (others := package_names(entries.select(name=name))):
            faults.append(
                f"the task {name} from the package {others} is ignored, because Parley itself "
                "has a task with this name: rename the task in the package"
            )
    return found, faults


def task_class(reference: str) -> type[Task]:
    """The task of a name or a path (`./my_game.py`, `./my_games.py:Second`, `./my_task.yaml`)."""
    found = find_task_class(reference)
    found.refuse_plain_class()
    return found


def find_task_class(reference: str) -> type[Task]:
    """The class of a task, which may still be incomplete."""
    path, colon, chosen = reference.rpartition(":") if ".py:" in reference else (reference, "", "")
    if path.endswith((".yaml", ".yml")):
        from parley.config.task_file import task_in

        return task_in(path)
    if path.endswith(".py"):
        return single_task_in(load_task_module(path), reference, chosen if colon else "")
    if reference in builtin_names():
        return single_task_in(import_module(f"parley.tasks.{reference}"), reference)
    if packages_with(reference):
        return load_installed(reference)
    raise unknown_name("task", reference, task_names())


def load_installed(name: str) -> type[Task]:
    """The task that another package provides under a name."""
    entries, packages = list(entry_points(group=GROUP, name=name)), packages_with(name)
    if len({entry.value for entry in entries}) > 1:
        raise UsageError(
            f"several packages provide the task {name} ({packages}): uninstall all but one"
        )
    what = f"task {name} cannot be loaded"
    try:
        found = entries[0].load()
    except KeyboardInterrupt:
        raise
    except BaseException as wrong:  # somebody else's module can do anything on import
        raise UsageError(
            f"{what}: {describe_exception(wrong)}; fix or uninstall the package {packages}"
        ) from wrong
    if not (isinstance(found, type) and issubclass(found, Task) and found.roles):
        raise UsageError(
            f"{what}: {entries[0].value} from the package {packages} is not a subclass of "
            "parley.Task; fix or uninstall the package"
        )
    return found


def packages_with(name: str) -> str:
    """The packages that provide a task of this name; empty if none does."""
    return package_names(entry_points(group=GROUP, name=name))


def package_names(entries: EntryPoints) -> str:
    """The packages of entry points."""
    return ", ".join(sorted({entry.dist.name if entry.dist else "unknown" for entry in entries}))


def is_task_path(reference: str) -> bool:
    """Whether a reference to a task is a path."""
    return reference.endswith((".py", ".yaml", ".yml")) or ".py:" in reference


def installed_task(reference: str) -> type[Task] | None:
    """The class of an installed task, by name; None for a file, and for a task that is not
    installed or cannot be loaded.

    Commands that read a run use this, because a run's record never decides which file is loaded.
    """
    if is_task_path(reference):
        return None
    try:
        return task_class(reference)
    except ParleyError:
        return None


def task_of_run(info: RunInfo) -> type[Task] | None:
    """The installed task that a run has played; None for a task in a file, for one that is not
    installed, and for another task of the same name."""
    found = installed_task(info.config.task)
    if found is not None and info.config.evolve is not None:
        from parley.config.evolved_task import evolve_task_class

        try:
            found = evolve_task_class(found, info.config.evolve)
        except UsageError:  # the task now has a role of that name
            return None
    return found if found and set(found.roles) == set(info.identity["roles"]) else None


def summarise_task(task: type[Task]) -> str:
    """The first line of a task's docstring."""
    lines = (task.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""


def load_task_module(path: str) -> ModuleType:
    """A user's file as a module."""
    place = Path(path).expanduser().resolve()
    if not place.is_file():
        raise UsageError(f"task file {path} does not exist: check the path")
    try:
        name = module_name(place, place.read_bytes())
    except OSError as wrong:
        raise UsageError(f"{path} cannot be read: {wrong.strerror}") from None
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file: a task file ends with .py or .yaml")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and prompts look up their module there
    try:
        spec.loader.exec_module(module)
    except TaskError as wrong:
        del sys.modules[name]
        raise TaskError(f"{locate_exception(wrong, str(place))}: {wrong}") from wrong
    except BaseException as wrong:  # a file may also call sys.exit
        del sys.modules[name]
        if isinstance(wrong, KeyboardInterrupt):
            raise
        fault = describe_exception(wrong, str(place))
        raise UsageError(f"{path} cannot be loaded: {fault}") from wrong
    return module


def module_name(place: Path, content: bytes = b"") -> str:
    """The module name of a user's file; a changed file is another module."""
    return (
        f"parley_task_{place.stem}_"
        f"{blake2b(str(place).encode() + content, digest_size=4).hexdigest()}"
    )


def single_task_in(module: ModuleType, reference: str, chosen: str = "") -> type[Task]:
    """The one task that a module defines, or the chosen one."""
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Task)
        and is_defined_in(value, module)
        and value.roles
    }
    if chosen:
        if chosen not in found:
            raise unknown_name(f"task in {reference}:", chosen, found)
        return found[chosen]
    if len(found) != 1:
        many = (
            f"several tasks ({', '.join(found)}): choose one with {reference}:NAME"
            if found
            else "no task"
        )
        raise UsageError(f"{reference} defines {many}")
    return next(iter(found.values()))


def is_defined_in(value: type, module: ModuleType) -> bool:
    """Whether a module, or one below a package, defines a class."""
    return f"{value.__module__}.".startswith(f"{module.__name__}.")
