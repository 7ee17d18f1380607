"""The digest of a rule: the task's own source, its base classes, and the rules that it shares with
other tasks.

It covers every module below `parley.tasks` and `parley.rules` that a task imports by its own path,
directly or through others, or by a name of `parley` that is defined there. Other names of `parley`
are the API, which has a version.
Import lines, comments, docstrings and the texts of errors that no model sees are left out. So
moving a module or rewording an error changes no digest.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import parley
from parley.rules.task import Task
from parley.store.config import text_digest

SHARED = ("parley.tasks.", "parley.rules.")
# These end a match or refuse a configuration, so their texts never reach a model.
UNSEEN_ERRORS = {"TaskError", "UsageError"}
# Where names of `parley` are defined that tasks share; those of `rules` are the API.
HOME = {
    name: f"parley.{module}"
    for name, module in parley._HOME.items()
    if not module.startswith("rules.")
}


def rule_digest(task: type[Task]) -> str:
    """The digest of a task's rule; empty if the rule has no source."""
    if not (own := task.definition or source_of(task)):
        return ""
    classes = [
        each
        for each in task.__mro__[1:]
        if each is not Task and not is_standard(each) and not vars(each).get("definition")
    ]
    sources = [own, *(source_of(each) for each in classes)]
    return text_digest("\n".join(sorted(with_shared(sources))))


def digest_without_bots(task: type[Task]) -> str:
    """The digest of a rule without the bots in the task's file and what only they need; empty for
    Parley's own tasks and for files without bots."""
    if task.__module__.startswith("parley.") or task.definition or not (own := source_of(task)):
        return ""
    alone = without_bots(own, task.__name__)
    if alone == own:
        return ""
    classes = [each for each in task.__mro__[1:] if each is not Task and not is_standard(each)]
    sources = [
        alone,
        *(without_bots(source_of(each), task.__name__) for each in classes),
    ]
    return text_digest("\n".join(sorted(with_shared(sources))))


def is_standard(kind: type) -> bool:
    """Whether a class is part of Python."""
    return kind.__module__.partition(".")[0] in sys.stdlib_module_names


def with_shared(sources: Iterable[str]) -> set[str]:
    """The set of sources without import lines, including the shared modules that they import."""
    found, seen, waiting = set[str](), set[str](), [source for source in sources if source]
    while waiting:
        source = waiting.pop()
        found.add(without_error_texts(without_imports(source)))
        for name in imported_modules(source):
            if name.startswith(SHARED) and name not in seen:
                seen.add(name)
                waiting += [shared] if (shared := module_source(name)) else []
    return found


@lru_cache(maxsize=256)
def imported_modules(source: str) -> frozenset[str]:
    """The modules that a source may import by name; text that is not Python imports none."""
    try:
        return frozenset(find_imports(ast.parse(source)))
    except SyntaxError:
        return frozenset()


def find_imports(tree: ast.Module) -> Iterator[str]:
    """The modules that a parsed source may import; some names may stand for no module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
            if node.module == "parley":
                yield from (HOME[each.name] for each in node.names if each.name in HOME)
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in HOME
            and isinstance(node.value, ast.Name)
            and node.value.id == "parley"
        ):
            yield HOME[node.attr]


@cache
def module_source(name: str) -> str:
    """The source of a shared module; empty for a package or a name that is not a module."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return ""
    if spec is None or spec.origin is None or spec.submodule_search_locations is not None:
        return ""
    return without_comments(Path(spec.origin).read_bytes())


def source_of(task: type) -> str:
    """The source of a class's file, without what only its parts need; empty if it has no file."""
    try:
        return rule_source(Path(inspect.getfile(task)).read_bytes(), task.__name__)
    except (TypeError, OSError):
        return ""


@lru_cache(maxsize=64)
def rule_source(source: bytes, name: str) -> str:
    """The source of a class's file without comments, docstrings and what only its parts need."""
    return without_parts(without_comments(source), name)


def without_comments(source: bytes) -> str:
    """A source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


@lru_cache(maxsize=256)
def without_imports(source: str) -> str:
    """A source without its import lines; text that is not Python is not changed."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and any(
                isinstance(each, ast.Import | ast.ImportFrom) for each in block
            ):
                kept = [each for each in block if not isinstance(each, ast.Import | ast.ImportFrom)]
                setattr(
                    node,
                    field,
                    kept
                    or ([] if isinstance(node, ast.Module) or field != "body" else [ast.Pass()]),
                )
    return ast.unparse(tree)


@lru_cache(maxsize=256)
def without_error_texts(source: str) -> str:
    """A source in which `raise TaskError(…)` and `raise UsageError(…)` have no arguments; text that
    is not Python stays as it is."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and isinstance(node.exc.func, ast.Name)
            and node.exc.func.id in UNSEEN_ERRORS
        ):
            node.exc.args, node.exc.keywords = [], []
    return ast.unparse(tree)


def without_parts(source: str, name: str) -> str:
    """A source without a class's `parts = …` and `sheet = …`, and without the definitions that
    nothing but these needs."""
    tree = ast.parse(source)
    own = next(
        (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name), None
    )
    declared = [node for node in own.body if is_parts(node)] if own else []
    if own is None or not declared:
        return source
    own.body = [node for node in own.body if node not in declared] or [ast.Pass()]
    by_name = {each: node for node in tree.body for each in defined_by(node)}
    analysis = names_needed_by(declared, by_name)
    rule = names_needed_by(
        [node for node in tree.body if not set(defined_by(node)) & analysis], by_name
    )
    tree.body = [
        node
        for node in tree.body
        if not (names := set(defined_by(node))) or names & rule or not names & analysis
    ]
    return ast.unparse(tree)


def without_bots(source: str, name: str) -> str:
    """A source without a class's bots (`bots = …` in it, `NAME.bots = …` below it), and without
    the functions that nothing but these bots needs. Anything else stays."""
    tree = ast.parse(source)
    inside = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    declared = [node for own in inside for node in own.body if is_assignment(node, "bots")]
    below = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign)
        and [ast.unparse(target) for target in node.targets] == [f"{name}.bots"]
    ]
    if not declared and not below:
        return source
    for own in inside:
        own.body = [node for node in own.body if node not in declared] or [ast.Pass()]
    tree.body = [node for node in tree.body if node not in below]
    functions = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    only_bots = names_needed_by([*declared, *below], dict(functions))
    rest = [node for node in tree.body if not set(defined_by(node)) & only_bots]
    needed = names_needed_by(rest, dict(functions))
    tree.body = [node for node in tree.body if node in rest or set(defined_by(node)) & needed]
    return ast.unparse(tree)


def is_parts(node: ast.stmt) -> bool:
    """Whether a statement of a class declares its parts, or its annotation sheet."""
    return is_assignment(node, "parts") or is_assignment(node, "sheet")


def is_assignment(node: ast.stmt, name: str) -> bool:
    """Whether a statement gives a value to a name."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def defined_by(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return [
        each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
    ]


def names_needed_by(nodes: Iterable[ast.AST], by_name: dict[str, ast.stmt]) -> set[str]:
    """The names of a module that some of its statements need, directly or through each other."""
    found, waiting = set[str](), list(nodes)
    while waiting:
        for each in ast.walk(waiting.pop()):
            if isinstance(each, ast.Name) and each.id in by_name and each.id not in found:
                found.add(each.id)
                waiting.append(by_name[each.id])
    return found
