"""Variables of prompts that nothing fills in, found in the source of a task before it is played.

Every `referee.render(PROMPT, name=value, …)` in the task's classes and in the functions beside them
is looked at. What cannot be read from the source, like a prompt that is chosen by a function, is
left to the match.
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
    """Refuse a prompt with a variable that is neither a parameter nor given where it is rendered;
    the error names the nearest one that is."""
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
                        f"{where}: prompt {prompt.name!r} has the variable {{{variable}}}, which "
                        f"is not given here; {hint}there are: {names}"
                    )


def own_functions(task: type[Task]) -> Iterator[FunctionType]:
    """The methods of a task's classes, and the functions of the files in which these stand."""
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
    """The prompts that a function renders: where, which, and the names of the values given.

    A call that passes `**values` on may give anything, and is left out.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # no source, as at a prompt of Python's own
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
    """The prompts that an expression may stand for: a name, an attribute of one, or an entry of a
    dict or tuple."""
    if isinstance(node, ast.Subscript):
        group = named_value(node.value, names)
        values = list(group.values()) if isinstance(group, Mapping) else group
        several = values if isinstance(values, list | tuple) else []
        return [each for each in several if isinstance(each, Prompt)]
    found = named_value(node, names)
    return [found] if isinstance(found, Prompt) else []


def named_value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The global value that a name, or an attribute of one, stands for; None if it cannot be
    seen."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(names.get(node.value.id), node.attr, None)
    return None
