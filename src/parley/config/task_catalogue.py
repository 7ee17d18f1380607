"""Which tasks there are: those of the package, those of other packages, and any file of the user's."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from parley import tasks
from parley.errors import TaskError, UsageError, unknown
from parley.rules.task import Task

SHARED = ("rules/numerals.py", "rules/languages.py", "tasks/_common/[!_]*.py", "tasks/*/scoring.py", "tasks/*/descriptions.py")


def names() -> list[str]:
    """The tasks that can be played by name."""
    own = {module.name for module in pkgutil.iter_modules(tasks.__path__) if not module.name.startswith("_")}
    return sorted(own | {entry.name for entry in entry_points(group="parley.tasks")})


def task_class(reference: str) -> type[Task]:
    """The task that a name or a path (`./my_game.py`, `./my_games.py:Second`, `./my_task.yaml`) stands for."""
    path, colon, chosen = reference.rpartition(":") if ".py:" in reference else (reference, "", "")
    if path.endswith((".yaml", ".yml")):
        from parley.config.task_file import task_in

        return task_in(path)
    if path.endswith(".py"):
        return only_task(from_file(path), reference, chosen if colon else "")
    for entry in entry_points(group="parley.tasks", name=reference):
        found: type[Task] = entry.load()
        return found
    if reference not in names():
        raise unknown("task", reference, names())
    return only_task(import_module(f"parley.tasks.{reference}"), reference)


def from_file(path: str) -> ModuleType:
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
    return f"parley_task_{place.stem}_{blake2b(str(place).encode() + content, digest_size=4).hexdigest()}"


def only_task(module: ModuleType, reference: str, chosen: str = "") -> type[Task]:
    """The one task that a module defines, or the chosen one."""
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Task) and defined_in(value, module) and value.roles
    }
    if chosen:
        if chosen not in found:
            raise unknown(f"task in {reference}:", chosen, found)
        return found[chosen]
    if len(found) != 1:
        many = f"several tasks ({', '.join(found)}): name one as {reference}:NAME" if found else "no task"
        raise UsageError(f"{reference} holds {many}")
    return next(iter(found.values()))


def defined_in(value: type, module: ModuleType) -> bool:
    """Whether a module, or one below a package, defines a class."""
    return f"{value.__module__}.".startswith(f"{module.__name__}.")


def rule_digest(task: type[Task]) -> str:
    """A digest of the rule: what defines the task and all that it inherits, with the shared rules that are imported there."""
    if not (own := task.definition or source_of(task)):
        return ""  # typed at a prompt: nothing to compare with later
    others = [
        each for each in task.__mro__[1:] if each is not Task and each.__module__.partition(".")[0] not in sys.stdlib_module_names
    ]
    inherited = [source_of(each) for each in others]
    return digest("\n".join(with_shared([own, *inherited], shared())))


def with_shared(sources: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Each source once, and of the shared ones those that they import, directly or through each other."""
    found = dict.fromkeys(source for source in sources if source)
    used: dict[str, str] = {}
    waiting = list(found)
    while waiting:
        names = [name for name in imported(waiting.pop()) if name in known and name not in used]
        used |= {name: known[name] for name in names}
        waiting += [known[name] for name in names]
    return list(found | dict.fromkeys(used[name] for name in sorted(used)))


def imported(source: str) -> Iterator[str]:
    """The modules that a source may import by name; what is no Python imports none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


@cache
def shared() -> dict[str, str]:
    """The modules of rules that tasks share, without their comments and docstrings."""
    top = Path(tasks.__path__[0]).parent
    paths = [path for pattern in SHARED for path in sorted(top.glob(pattern))]
    names = [".".join(("parley", *path.relative_to(top).with_suffix("").parts)) for path in paths]
    return {name.removesuffix(".__init__"): stripped(path.read_bytes()) for name, path in zip(names, paths, strict=True)}


def source_of(task: type) -> str:
    """The file of a class without its comments and docstrings; nothing if it has none."""
    if task.__module__ in shared():
        return shared()[task.__module__]
    try:
        return stripped(Path(inspect.getfile(task)).read_bytes())
    except (TypeError, OSError):
        return ""


def stripped(source: bytes) -> str:
    """A source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def digest(text: str) -> str:
    """A few letters that stand for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
