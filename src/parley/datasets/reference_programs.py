"""Facts about a problem from its reference program: the names that tests call, and the signature
that the programmer sees."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress

from parley.rules.python_tests import find_definitions, parse_tests

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def with_unix_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_program(code: str, what: str) -> ast.Module:
    """Parse code, ignoring Python's warnings, for example about invalid escapes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as wrong:
        raise ValueError(f"{what} is not valid Python: {wrong}") from None


def names_defined(code: str) -> dict[str, Definition]:
    """The functions and classes that a reference defines at its top level."""
    return top_level_definitions(parse_program(code, "the reference"))


def top_level_definitions(tree: ast.Module) -> dict[str, Definition]:
    return {node.name: node for node in tree.body if isinstance(node, Definition)}


def names_called(reference: str, tests: Iterable[str]) -> tuple[str, ...]:
    """The names that a reference defines and its tests use, even if they shadow builtins. Constants
    are left out: the tests get them from the reference, not from the program."""
    trees = [parse_program(test, "a test") for test in tests]
    used = {
        node.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    own = {name for tree in trees for name in top_level_definitions(tree)}
    constants = constants_in(parse_program(reference, "the reference").body)
    return tuple(
        name for name in find_definitions(reference) if name in used - own - constants.keys()
    )


def lines_for_tests(reference: str, names: Iterable[str], texts: Iterable[str]) -> str:
    """The imports and constants that tests need and only their reference has. They are added to the
    tests, so that no program can substitute its own. Other undefined names are an error."""
    body = parse_program(reference, "the reference").body
    missing = {*parse_tests(tuple(texts), "", "").names} - {*names}
    constants = constants_in(body)
    lines = [f"{name} = {constants[name]}\n" for name in sorted(missing & constants.keys())]
    missing -= {
        name.id
        for node in body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    for node in body if missing else ():
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for each in node.names:
            module = node.module or "" if isinstance(node, ast.ImportFrom) else each.name
            bound = each.asname or each.name.partition(".")[0]
            standard = module.partition(".")[0] in sys.stdlib_module_names
            if bound in missing and standard:
                missing.discard(bound)
                source = f"from {module} " if isinstance(node, ast.ImportFrom) else ""
                lines.append(f"{source}import {ast.unparse(each)}\n")
    if missing:
        raise ValueError(
            f"the tests use {sorted(missing)[0]!r}, but neither the tests nor the reference "
            "solution define this name: import or define it in `setup`"
        )
    return "".join(lines)


def constants_in(body: Iterable[ast.stmt]) -> dict[str, str]:
    """The literal values that a program assigns to names at its top level, as text."""
    found = {}
    for node in body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        if isinstance(name := node.targets[0], ast.Name):
            with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                found[name.id] = repr(ast.literal_eval(node.value))
    return found


def can_fail(test: str, context: Iterable[str] = ()) -> bool:
    """Whether a test asserts or raises anything, itself or through functions of its setup or
    prelude."""
    tree = parse_program(test, "a test")
    trees = [tree, *(parse_program(code, "a setup") for code in context)]
    defined = {
        node.name: node for each in trees for node in ast.walk(each) if isinstance(node, Definition)
    }
    waiting: list[ast.AST] = [node for node in tree.body if not isinstance(node, Definition)]
    seen: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Assert | ast.Raise) or (
                isinstance(node, ast.Call) and is_assertion_name(node.func)
            ):
                return True
            if isinstance(node, ast.Name) and node.id in defined and node.id not in seen:
                seen.add(node.id)
                waiting.append(defined[node.id])
    return False


def is_assertion_name(called: ast.expr) -> bool:
    """Whether a called name looks like an assertion: `assert_allclose`, `self.assertEqual`,
    `unittest.main`."""
    name = (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )
    return name.startswith(("assert", "fail")) or name in ("main", "exit", "raises")


def signature_of(reference: str, names: Iterable[str]) -> str:
    """The signatures of these names without bodies, like `def f(a: int, b=2) -> int`; classes with
    their public methods."""
    defined = names_defined(reference)
    return "\n".join(definition_head(defined[name]) for name in names if name in defined)


def definition_head(node: Definition) -> str:
    if isinstance(node, ast.ClassDef):
        methods = [
            each for each in node.body if isinstance(each, Function) and method_head(each.name)
        ]
        bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
        return (
            "\n    ".join([f"class {node.name}{bases}:", *map(definition_head, methods)])
            if methods
            else f"class {node.name}{bases}"
        )
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return (
        f"{'async ' * isinstance(node, ast.AsyncFunctionDef)}def "
        f"{node.name}({ast.unparse(node.args)}){returns}"
    )


def method_head(method: str) -> bool:
    return method == "__init__" or not method.startswith("_")
