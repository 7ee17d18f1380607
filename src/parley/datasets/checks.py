"""Checks of items before a run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from parley.datasets.open_references import question_identity
from parley.datasets.os_checks import check_os_entries
from parley.rules.items.os_entry import OSEntry
from parley.rules.items.problem import Problem
from parley.rules.items.question import Question
from parley.sandbox.executor import Sandbox
from parley.tables import plural, shorten

NAMED = 5  # ids to list in a remark


class CheckResult(NamedTuple):
    """The result of a check."""

    checked: int  # number of items that could be checked
    faults: dict[str, str]  # what is wrong, by id
    remarks: tuple[str, ...] = ()  # facts about all items


Told = Callable[[int], None]  # called with the number of items checked so far
Check = Callable[[Sequence[Any], Told], Coroutine[Any, Any, CheckResult]]


async def try_reference(sandbox: Sandbox, problem: Problem) -> tuple[Problem, Sequence[str]]:
    """Run a problem's reference. Returns the problem with the way in which its programs are judged,
    and the faults of the reference.

    Programs are judged in their own process if only there the reference passes. No program that is
    judged has a part in this.
    """
    by_values, inside = replace(problem, inside=False), replace(problem, inside=True)
    found = await sandbox.execute(by_values.program(problem.reference))
    if found["passed"] or problem.cases:
        return by_values, found["faults"]
    again = await sandbox.execute(inside.program(problem.reference))
    return (inside, again["faults"]) if again["passed"] else (by_values, found["faults"])


async def check_reference_programs(problems: Sequence[Problem], told: Told) -> CheckResult:
    """Find problems whose reference fails its own tests, and list those whose results a program can
    forge. Problems without a reference cannot be run."""
    sandbox, verdicts = Sandbox(), dict[str, str]()
    checked = [problem for problem in problems if problem.reference]
    found = {problem.id: problem for problem in problems}

    async def look(problem: Problem) -> None:
        found[problem.id], faults = await try_reference(sandbox, problem)
        named = (
            f"{'case' if problem.cases else 'test'} {n}: {fault}"
            for n, fault in enumerate(faults, 1)
            if fault
        )
        verdict = next(named, "")
        if "ModuleNotFoundError" in verdict:
            verdict += " (tests and programs can import only the standard library)"
        verdicts[problem.id] = verdict
        told(len(verdicts))

    try:
        await asyncio.gather(*map(look, checked))
    finally:
        sandbox.close()
    unprotected = [each.id for each in found.values() if each.is_unprotected]
    remark = (
        f"{len(unprotected)} of {plural(len(found), 'problem')} unprotected: a program can forge "
        f"the result of its tests, which counts apart ({', '.join(unprotected)})"
    )
    return CheckResult(
        len(checked),
        {problem.id: verdicts[problem.id] for problem in checked if verdicts[problem.id]},
        (remark,) if unprotected else (),
    )


async def check_questions(questions: Sequence[Question], told: Told) -> CheckResult:
    """Find duplicate questions and duplicate choices, and count the right letters."""
    first, faults = dict[Any, str](), dict[str, str]()
    for each in questions:
        doubles = [text for text, count in Counter(each.choices).items() if count > 1]
        if (other := first.setdefault(question_identity(each), each.id)) != each.id:
            faults[each.id] = f"this item asks the same question as {other}"
        elif doubles:
            which = "the right choice" if each.right in doubles else "a choice"
            faults[each.id] = f"this question lists {which} twice: {shorten(doubles[0])!r}"
    told(len(questions))
    letters = Counter(each.answer for each in questions if each.choices)
    exact = sum(not each.choices for each in questions)
    remarks = (
        [
            "how often each letter is the right answer: "
            f"{', '.join(f'{letter} {letters[letter]}' for letter in sorted(letters))}"
        ]
        if letters
        else []
    )
    remarks += [f"questions without choices: {exact}"] if exact else []
    sizes = Counter(len(each.choices) for each in questions if each.choices)
    if len(sizes) > 1:
        few = [each.id for each in questions if each.choices and len(each.choices) < max(sizes)]
        named = ", ".join([*few[:NAMED], *(["…"] if len(few) > NAMED else [])])
        remarks.append(f"questions with fewer than {max(sizes)} choices: {len(few)} ({named})")
    subjects = Counter(each.subject for each in questions if each.subject)
    remarks += (
        [
            f"subjects: {len(subjects)}, with {min(subjects.values())} to "
            f"{max(subjects.values())} questions each"
        ]
        if subjects
        else []
    )
    return CheckResult(len(questions), faults, tuple(remarks))


async def check_machines(entries: Sequence[OSEntry], told: Told) -> CheckResult:
    """Find command-line tasks whose example fails their own check, or whose checks pass although
    nothing was done."""
    return CheckResult(*await check_os_entries(entries, told))


CHECKS: dict[type, Check] = {
    OSEntry: check_machines,
    Problem: check_reference_programs,
    Question: check_questions,
}
