"""Prompts: named texts whose variables are checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from parley.errors import TaskError, unknown_name

VARIABLE = re.compile(r"\{([A-Za-z_]\w*)\}")
MEANING = re.compile(r"^ *(\w+) {2,}(\S.*)$", re.MULTILINE)


class Prompt:
    """A named text of the referee; only `{identifier}` is substituted, so JSON braces survive."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    @cached_property
    def pieces(self) -> list[str]:
        return VARIABLE.split(self.text)  # text, variable, text, variable, …, text

    @cached_property
    def variables(self) -> list[str]:
        return sorted(set(self.pieces[1::2]))

    def render(self, values: Mapping[str, Any]) -> str:
        pieces = self.pieces
        if len(pieces) == 1:
            return self.text
        try:
            filled = [
                format_value(values[piece]) if odd % 2 else piece
                for odd, piece in enumerate(pieces)
            ]
        except KeyError as missing:
            (name,) = missing.args
            near = get_close_matches(name, values, n=1)
            hint = f"did you mean {{{near[0]}}}? " if near else ""
            raise TaskError(
                f"prompt {self.name!r} uses {{{name}}}, but `play` gives it no value; "
                f"{hint}available: "
                f"{', '.join(f'{{{each}}}' for each in sorted(values)) or 'none'}"
            ) from None
        return "".join(filled)

    def replaced(self, text: str, also: Iterable[str]) -> Prompt:
        """This prompt with another text, which may use its variables and the task's parameters."""
        other, known = Prompt(self.name, text), {*self.variables, *also}
        for name in other.variables:
            if name not in known:
                raise unknown_name(f"variable in your text for prompt {self.name!r}:", name, known)
        return other

    def without(self, other: Prompt) -> str:
        """The variables of this prompt that another does not use."""
        return ", ".join(f"{{{name}}}" for name in self.variables if name not in other.variables)


def prompt_address(task: str, name: str) -> str:
    """The name under which users replace a prompt: TASK.NAME, unless it already has a dot."""
    return name if "." in name else f"{task}.{name}"


# Every referee uses these when a reply has the wrong form; a configuration may replace them too.
AGAIN = Prompt("again", "Your reply could not be read: {fault}. {hint}")
SHORTER = Prompt(
    "shorter", "Your reply was cut off by the length limit. Give it again, shorter. {hint}"
)
FORM = Prompt("form", "Now put your reply into the required form. {hint}")
COMMON = {prompt.name: prompt for prompt in (AGAIN, SHORTER, FORM)}


def round_numbers(value: Any) -> Any:
    """Round a number, or the numbers in a list, for display."""
    if isinstance(value, float):
        return float(f"{value:.3g}") if abs(value) < 1 else round(value, 2)
    if isinstance(value, list | tuple):
        return [round_numbers(each) for each in value]
    return value


def format_value(value: Any) -> str:
    """Format a value for a prompt: numbers without floating-point noise, lists in brackets."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(format_value, value))}]"
    return str(value)
