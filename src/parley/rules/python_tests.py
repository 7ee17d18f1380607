"""What a programming problem shows before anything runs: the names that its tests use and only a
program can define, whether its tests run text as code, and what a program defines."""

from __future__ import annotations

import ast
import builtins
import sys
import warnings
from dataclasses import dataclass
from functools import lru_cache

# With these, tests can run text as code. If the text comes from the program, it can forge results.
EVALUATING = {
    "eval", "exec", "import_module", "system", "popen", "globals", "locals", "vars", "setattr",
    "get_type_hints", "ForwardRef", "__import__", "__builtins__", "__globals__", "__dict__",
    "__code__", "__subclasses__",
}  # fmt: skip
MODULES = {
    "builtins", "code", "codeop", "ctypes", "doctest", "importlib", "marshal", "pickle", "runpy",
    "shelve", "subprocess", "timeit",
}  # fmt: skip


@dataclass(frozen=True)
class ParsedTests:
    """Facts about the tests of a problem."""

    names: tuple[str, ...]  # used by tests; only the program can define them
    modules: tuple[str, ...]  # standard modules that tests use without importing them
    runs_text: bool  # whether tests can run text as code
    has_star: bool = False  # whether they import all names of a module

    def find_undefined(self, names: tuple[str, ...]) -> str:
        """What is wrong if tests use a name that is not among these; empty if they do not."""
        undefined = [name for name in self.names if name not in names]
        if not undefined:
            return ""
        star = (
            ", or import it by its name (`import *` does not show names)" if self.has_star else ""
        )
        return (
            f"the tests use {undefined[0]!r}, but nothing defines this name: define it in `setup` "
            f"or `prelude`, or list it in `names` if the program must define it{star}"
        )


@lru_cache(256)
def parse_tests(tests: tuple[str, ...], setup: str, prelude: str) -> ParsedTests:
    """Parse tests; ValueError if one is not valid Python."""
    used: set[str] = set()
    plain: set[str] = set()  # used otherwise than `name.attribute`
    known = set(dir(builtins))
    runs_text = has_star = False
    for text in (prelude, setup, *tests):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
                compile(text, "test.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as wrong:
            raise ValueError(f"a test is not valid Python: {wrong} in {str(text)[:80]!r}") from None
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
                has_star = has_star or any(alias.name == "*" for alias in node.names)
                known.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                known.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                known.add(node.rest)
    # `math.x` means the module, so a program cannot bring its own; `bisect(x)` means a function.
    free = used - known
    standard = {name for name in free - plain if name in sys.stdlib_module_names}
    runs_text = runs_text or not standard.isdisjoint(MODULES)
    undefined = tuple(sorted(free - standard))
    return ParsedTests(undefined, tuple(sorted(standard)), runs_text, has_star)


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
def find_definitions(code: str) -> dict[str, bool]:
    """The names that a program defines at its top level, and whether each is that of a class; none
    if it is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = isinstance(node, ast.ClassDef)
        elif isinstance(node, ast.Assign):
            found |= {name.id: False for name in node.targets if isinstance(name, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
            found[node.target.id] = False
    return found
