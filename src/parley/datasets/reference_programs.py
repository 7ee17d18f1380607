"""What a reference program tells about a problem: the names that tests call, and the signature that
a programmer is told."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def unix(text: str) -> str:
    """A text with plain ends of lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parsed(code: str, what: str) -> ast.Module:
    """Code as a tree; what Python merely frowns at, like the escapes in old patterns, is let
    pass."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as wrong:
        raise ValueError(f"{what} is no Python: {wrong}") from None


def defined_in(code: str) -> dict[str, Definition]:
    """The functions and classes that a reference defines at its top."""
    return defined_at_the_top(parsed(code, "the reference"))


def defined_at_the_top(tree: ast.Module) -> dict[str, Definition]:
    return {node.name: node for node in tree.body if isinstance(node, Definition)}


def names_called(reference: str, tests: Iterable[str]) -> tuple[str, ...]:
    """What a reference defines and its tests use, also where it has the name of a builtin."""
    trees = [parsed(test, "a test") for test in tests]
    used = {
        node.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    own = {name for tree in trees for name in defined_at_the_top(tree)}
    return tuple(name for name in defined_in(reference) if name in used - own)


def can_fail(test: str, context: Iterable[str] = ()) -> bool:
    """Whether a test asserts or raises anything: by itself, or through what it, its setup or its
    prelude define and it uses."""
    tree = parsed(test, "a test")
    trees = [tree, *(parsed(code, "a setup") for code in context)]
    defined = {
        node.name: node for each in trees for node in ast.walk(each) if isinstance(node, Definition)
    }
    waiting: list[ast.AST] = [node for node in tree.body if not isinstance(node, Definition)]
    seen: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Assert | ast.Raise) or (
                isinstance(node, ast.Call) and claims(node.func)
            ):
                return True
            if isinstance(node, ast.Name) and node.id in defined and node.id not in seen:
                seen.add(node.id)
                waiting.append(defined[node.id])
    return False


def claims(called: ast.expr) -> bool:
    """Whether what is called claims something, by its name: `assert_allclose`, `self.assertEqual`,
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
    """The heads of what is called, without bodies: `def f(a: int, b=2) -> int`; of a class, with
    its public methods."""
    defined = defined_in(reference)
    return "\n".join(head(defined[name]) for name in names if name in defined)


def head(node: Definition) -> str:
    if isinstance(node, ast.ClassDef):
        methods = [each for each in node.body if isinstance(each, Function) and shown(each.name)]
        bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
        return (
            "\n    ".join([f"class {node.name}{bases}:", *map(head, methods)])
            if methods
            else f"class {node.name}{bases}"
        )
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return (
        f"{'async ' * isinstance(node, ast.AsyncFunctionDef)}def "
        f"{node.name}({ast.unparse(node.args)}){returns}"
    )


def shown(method: str) -> bool:
    return method == "__init__" or not method.startswith("_")
