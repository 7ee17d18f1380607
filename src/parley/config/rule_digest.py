"""The digest of a rule: what defines a task and all that it shares with others."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from parley import tasks
from parley.rules.task import Task
from parley.store.config import digest

SHARED = ("rules/numerals.py", "rules/languages.py", "tasks/_common/[!_]*.py", "tasks/*/scoring.py", "tasks/*/descriptions.py")


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
