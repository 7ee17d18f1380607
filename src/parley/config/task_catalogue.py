"""Which tasks there are: those of the package, those of other packages, and any file of the
user's."""

from __future__ import annotations

import pkgutil
import sys
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from parley import tasks
from parley.errors import TaskError, UsageError, unknown_name
from parley.rules.task import Task


def task_names() -> list[str]:
    """The tasks that can be played by name."""
    own = {
        module.name
        for module in pkgutil.iter_modules(tasks.__path__)
        if not module.name.startswith("_")
    }
    return sorted(own | {entry.name for entry in entry_points(group="parley.tasks")})


def task_class(reference: str) -> type[Task]:
    """The task that a name or a path (`./my_game.py`, `./my_games.py:Second`, `./my_task.yaml`)
    stands for."""
    path, colon, chosen = reference.rpartition(":") if ".py:" in reference else (reference, "", "")
    if path.endswith((".yaml", ".yml")):
        from parley.config.task_file import task_in

        return task_in(path)
    if path.endswith(".py"):
        return single_task_in(load_task_module(path), reference, chosen if colon else "")
    for entry in entry_points(group="parley.tasks", name=reference):
        found: type[Task] = entry.load()
        return found
    if reference not in task_names():
        raise unknown_name("task", reference, task_names())
    return single_task_in(import_module(f"parley.tasks.{reference}"), reference)


def is_task_path(reference: str) -> bool:
    """Whether a task is named by the path of a file."""
    return reference.endswith((".py", ".yaml", ".yml")) or ".py:" in reference


def installed_task(reference: str) -> type[Task] | None:
    """The class of an installed task, by name; None for a file, and for a task that is not
    installed or cannot be loaded.

    Commands that read a run use this: a run's record never chooses a file to load.
    """
    if is_task_path(reference):
        return None
    try:
        return task_class(reference)
    except (UsageError, TaskError, ImportError, AttributeError):
        return None


def load_task_module(path: str) -> ModuleType:
    """A user's file as a module."""
    place = Path(path).expanduser().resolve()
    if not place.is_file():
        raise UsageError(f"there is no task file {path}")
    try:
        name = module_name(place, place.read_bytes())
    except OSError as wrong:
        raise UsageError(f"{path} cannot be read: {wrong.strerror}") from None
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and prompts look themselves up there
    try:
        spec.loader.exec_module(module)
    except TaskError:
        del sys.modules[name]
        raise
    except BaseException as wrong:  # a file may also leave the program
        del sys.modules[name]
        if isinstance(wrong, KeyboardInterrupt):
            raise
        raise UsageError(f"{path} cannot be loaded: {type(wrong).__name__}: {wrong}") from wrong
    return module


def module_name(place: Path, content: bytes = b"") -> str:
    """Under which name a user's file is loaded: a changed file is another module."""
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
            f"several tasks ({', '.join(found)}): name one as {reference}:NAME"
            if found
            else "no task"
        )
        raise UsageError(f"{reference} holds {many}")
    return next(iter(found.values()))


def is_defined_in(value: type, module: ModuleType) -> bool:
    """Whether a module, or one below a package, defines a class."""
    return f"{value.__module__}.".startswith(f"{module.__name__}.")
