"""Prompts of a task that a configuration replaces."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields

from parley.errors import unknown_name
from parley.match.task_errors import errors_of_task
from parley.rules.prompts import FORM, Prompt, prompt_address
from parley.rules.task import Task


def unused_prompts(task: Task, seats: Mapping[str, int], standardise: str) -> frozenset[str]:
    """The prompts that this configuration never uses."""
    with errors_of_task(task, "unused_prompts"):
        own = list(task.unused_prompts(seats))
    return frozenset((*own, *(() if standardise == "always" else (FORM.name,))))


def chosen_prompts(
    task: type[Task], replaced: Mapping[str, str], unused: Collection[str] = ()
) -> dict[str, Prompt]:
    """The prompts of a run: the task's own or their replacements. Unused prompts are not
    replaced."""
    own = task.prompts()
    known = {prompt_address(task.name, name): prompt for name, prompt in own.items()}
    params = [each.name for each in fields(task)]  # type: ignore[arg-type]
    for address, text in replaced.items():
        if address not in known:
            raise unknown_name("prompt", address, known)
        other = known[address].replaced(text, params)
        if other.name not in unused:
            own[other.name] = other
    return own


def about_prompts(
    task: type[Task], replaced: Mapping[str, str], unused: Collection[str]
) -> Iterator[str]:
    """Warnings about replaced prompts."""
    for name, own in task.prompts().items():
        address = prompt_address(task.name, name)
        if address in replaced and name in unused:
            yield (
                f"you replaced the prompt `{address}`, but this configuration never uses it, so "
                "the replacement has no effect"
            )
        elif address in replaced and (missing := own.without(Prompt(name, replaced[address]))):
            yield (
                f"your replacement for the prompt `{address}` does not contain {missing}, which "
                "the original prompt contains"
            )
