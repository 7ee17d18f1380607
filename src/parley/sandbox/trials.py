"""Trials: a program with its tests or cases, parsed once for each problem."""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from parley.errors import TaskError

KEYS = {"kind", "code", "tests", "names", "classes", "setup", "prelude", "cases", "inside"}
# Helpers of test libraries: no program may define its own.
HELPERS = {"approx", "isclose", "allclose", "raises", "pytest", "unittest", "np", "numpy", "pd"}
# With these, tests can run text as code. If the text comes from the program, it can forge results.
EVALUATING = {"eval", "exec", "import_module", "system", "popen", "globals", "locals", "vars",
              "setattr"} | {
    "get_type_hints", "ForwardRef", "__import__", "__builtins__", "__globals__", "__dict__",
    "__code__", "__subclasses__"
}  # fmt: skip
MODULES = {"builtins", "code", "codeop", "ctypes", "doctest", "importlib", "marshal", "pickle",
           "runpy", "shelve"} | {
    "subprocess", "timeit"
}  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """A program with tests that call what it defines, or with cases that compare its output for an
    input."""

    code: str
    tests: tuple[str, ...] = ()  # Python; each is one test
    names: tuple[str, ...] = ()  # what tests call and the program must define
    classes: tuple[str, ...] = ()  # the names that are classes
    setup: str = ""  # run before the tests, after the program
    prelude: str = ""  # code of the tests that no program can replace
    # standard input and the expected standard output
    cases: tuple[tuple[str, str], ...] = ()
    # tests that pass functions run in the program's process, where it can forge the result
    inside: bool = False

    @property
    def count(self) -> int:
        return len(self.tests or self.cases)

    @property
    def problem(self) -> bytes:
        """The problem as it is sent to a judge."""
        return problem_of(self.tests, self.names, self.classes, self.setup, self.prelude)

    @property
    def evaluates(self) -> bool:
        """Whether tests can run text as code."""
        return read(self.tests, self.setup, self.prelude).runs_text


def trial_of(program: Mapping[str, Any]) -> Trial:
    """Make a trial of a task's request to run a program."""
    if unknown := set(program) - KEYS:
        raise TaskError(
            f"unknown key in a request to run a program: {', '.join(sorted(unknown))}; valid "
            f"keys: {', '.join(sorted(KEYS))}"
        )
    code, tests, cases = (
        program.get("code"),
        tuple(program.get("tests", ())),
        program.get("cases", ()),
    )
    if not isinstance(code, str) or bool(tests) == bool(cases):
        raise TaskError(
            "a request to run a program needs text in `code`, and either `tests` or `cases` "
            "(not both, and not empty)"
        )
    setup, prelude = str(program.get("setup", "")), str(program.get("prelude", ""))
    found = read(tests, setup, prelude)
    given = {key: listed(program, key) for key in ("names", "classes") if key in program}
    names, classes = given.get("names", found.names), given.get("classes", ())
    if helpers := [
        name for name in found.names if name in HELPERS and name not in given.get("names", ())
    ]:
        raise TaskError(
            f"the tests use {helpers[0]!r}, but nothing defines this name: import or define it "
            "in `setup` or `prelude`"
        )
    imports = "".join(f"import {name}\n" for name in found.modules if name not in names)
    pairs = tuple((str(stdin), str(wanted)) for stdin, wanted in cases)
    inside = bool(program.get("inside"))
    return Trial(code, tests, names, classes, setup, imports + prelude, pairs, inside)


def listed(program: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of names in what a task asks for."""
    given = program[key]
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise TaskError(
            f"`{key}` of a program must be a list of names that its tests call, not {given!r}"
        )
    return tuple(given)


@dataclass(frozen=True)
class ParsedTests:
    """Facts about the tests of a problem."""

    names: tuple[str, ...]  # used by tests; only the program can define them
    modules: tuple[str, ...]  # standard modules that tests use without importing them
    runs_text: bool  # whether tests can run text as code


@lru_cache(256)
def read(tests: tuple[str, ...], setup: str, prelude: str) -> ParsedTests:
    used: set[str] = set()
    plain: set[str] = set()  # used otherwise than `name.attribute`
    known = set(dir(builtins))
    runs_text = False
    for text in (prelude, setup, *tests):
        try:
            tree = ast.parse(text)
            compile(text, "test.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as wrong:
            raise TaskError(f"a test is not valid Python: {wrong} in {str(text)[:80]!r}") from None
        modules = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
        for node in ast.walk(tree):
            runs_text = runs_text or evaluates(node)
            if isinstance(node, ast.Name):
                if id(node) not in modules:
                    plain.add(node.id)
                (used if isinstance(node.ctx, ast.Load) else known).add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                known.add(node.name)
            elif isinstance(node, ast.arg):
                known.add(node.arg)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                known.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                known.add(node.name)
    # `math.x` means the module, so a program cannot bring its own; `bisect(x)` means a function.
    free = used - known
    standard = {name for name in free - plain if name in sys.stdlib_module_names}
    runs_text = runs_text or not standard.isdisjoint(MODULES)
    return ParsedTests(tuple(sorted(free - standard)), tuple(sorted(standard)), runs_text)


def evaluates(node: ast.AST) -> bool:
    """Whether a part of a test may run text as code."""
    if isinstance(node, ast.Name):
        return node.id in EVALUATING or node.id == "compile"  # that of `re` is another one
    if isinstance(node, ast.Attribute):
        return node.attr in EVALUATING
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        return not (len(node.args) > 1 and isinstance(node.args[1], ast.Constant))
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in MODULES for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES


@lru_cache(256)
def problem_of(
    tests: tuple[str, ...],
    names: tuple[str, ...],
    classes: tuple[str, ...],
    setup: str,
    prelude: str,
) -> bytes:
    told = {"tests": tests, "names": names, "classes": classes, "setup": setup, "prelude": prelude}
    return json.dumps(told).encode()
