"""Finds prompt variables without a value in the source of a task, before it is played.

This checks every `referee.render(PROMPT, name=value, …)` in the task's classes and in the functions
of the same file. Cases that the source does not show, such as a prompt that a function chooses,
fail only in the match.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from types import FunctionType
from typing import Any

from parley.errors import TaskError, file_name
from parley.rules.prompts import Prompt
from parley.rules.task import Task


def check_prompt_variables(task: type[Task]) -> None:
    """Refuse a prompt with a variable that is neither a parameter nor passed to `render`; the error
    suggests the nearest name."""
    params = {each.name for each in fields(task)}  # type: ignore[arg-type]
    for function in own_functions(task):
        for where, prompt, given in rendered_prompts(function):
            known = sorted(params | given)
            for variable in prompt.variables:
                if variable not in known:
                    near = get_close_matches(variable, known, n=1)
                    hint = f"did you mean {{{near[0]}}}? " if near else ""
                    names = ", ".join(f"{{{name}}}" for name in known) or "none"
                    raise TaskError(
                        f"{where}: prompt {prompt.name!r} uses the variable {{{variable}}}, "
                        f"which has no value here; {hint}available: {names}"
                    )


def own_functions(task: type[Task]) -> Iterator[FunctionType]:
    """The methods of a task's classes, and the functions in the same files."""
    seen: set[int] = set()
    for kind in task.__mro__:
        if not issubclass(kind, Task) or kind is Task:
            continue
        module = sys.modules.get(kind.__module__)
        for value in [*vars(kind).values(), *vars(module).values()]:
            function = inspect.unwrap(getattr(value, "__func__", value))
            if (
                isinstance(function, FunctionType)
                and function.__module__ == kind.__module__
                and id(function) not in seen
            ):
                seen.add(id(function))
                yield function


def rendered_prompts(function: FunctionType) -> Iterator[tuple[str, Prompt, set[str]]]:
    """The prompts that a function renders: the line, the prompt, and the names of the values.

    A call with `**values` may pass anything, and is left out.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # no source, as in the interactive interpreter
        return
    for node in ast.walk(tree):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "render"
            and len(node.args) == 1
            and all(each.arg is not None for each in node.keywords)
        ):
            continue
        where = f"{file_name(function.__code__.co_filename)}, line {first + node.lineno - 1}"
        given = {str(each.arg) for each in node.keywords}
        for prompt in named_prompts(node.args[0], function.__globals__):
            yield where, prompt, given


def named_prompts(node: ast.expr, names: Mapping[str, Any]) -> list[Prompt]:
    """The prompts that an expression may mean: a name, an attribute of one, or an entry of a dict
    or tuple."""
    if isinstance(node, ast.Subscript):
        group = named_value(node.value, names)
        values = list(group.values()) if isinstance(group, Mapping) else group
        several = values if isinstance(values, list | tuple) else []
        return [each for each in several if isinstance(each, Prompt)]
    found = named_value(node, names)
    return [found] if isinstance(found, Prompt) else []


def named_value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The global value of a name, or of an attribute of one; None if it is unknown."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(names.get(node.value.id), node.attr, None)
    return None
