"""Check whether command-line tasks can be played on this machine: each example must pass, and doing
nothing must fail."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from parley.errors import SandboxError
from parley.rules.items.os_entry import OSEntry
from parley.sandbox.executor import Sandbox
from parley.tables import shorten
from parley.tasks._common.os_machine import (
    LANGUAGES,
    Run,
    command_request,
    describe_unprepared,
    example_command,
    judge_machine,
    prepare_machine,
)

# What programs print if they need a network connection.
OFFLINE = re.compile(
    r"resolve|resolution|network is unreachable|address family not supported|"
    r"unable to (?:fetch|locate package|connect)|failed to fetch|could ?n.?t connect|"
    r"connection (?:refused|timed out)|has no installation candidate",
    re.IGNORECASE,
)
FETCHES = re.compile(
    r"\b(?:apt|apt-get|pip|pip3|npm|conda|yum|dnf)\s+(?:-\S+\s+)*(?:update|install)\b|"
    r"\b(?:curl|wget|git\s+clone)\s"
)
SECONDS = 180  # timeout for an example
INERT = "the check passes although nothing was done, so every model would pass"


class ExampleResult(NamedTuple):
    """Why the example of an entry fails: a keyword and a sentence; both empty if it passes."""

    reason: str = ""
    detail: str = ""


async def check_os_entries(
    entries: Sequence[OSEntry], told: Callable[[int], None]
) -> tuple[int, dict[str, str], tuple[str, ...]]:
    """Check all entries: their number, what is wrong by id, and a summary of the reasons."""
    sandbox, turns = Sandbox(), asyncio.Semaphore(max(2, os.cpu_count() or 1))
    found: dict[str, ExampleResult] = {}

    async def look(entry: OSEntry) -> None:
        async with turns:
            found[entry.id] = await check_entry(sandbox, entry)
            told(len(found))

    try:
        await asyncio.gather(*map(look, entries))
    finally:
        await sandbox.close_shells()
        sandbox.close()
    faults = {
        entry.id: f"{found[entry.id].reason}: {found[entry.id].detail}"
        for entry in entries
        if found[entry.id].reason
    }
    reasons = Counter(each.reason for each in found.values() if each.reason)
    examples = sum(entry.example is not None for entry in entries)
    summary = [f"{examples} of {len(entries)} entries have an example solution"]
    summary += list_unprotected(entries)
    reasons_line = [
        f"failures by reason: {', '.join(f'{why} {n}' for why, n in reasons.most_common())}"
    ]
    return len(entries), faults, (*summary, *(reasons_line if reasons else []))


def list_unprotected(entries: Sequence[OSEntry]) -> list[str]:
    """The entries whose verdict a model can forge, with what their checks need and why."""
    found = [entry for entry in entries if entry.is_unprotected]
    if not found:
        return []
    return [
        f"{len(found)} of {len(entries)} entries are unprotected: the model can forge their "
        "verdict, which counts as `success_unprotected`",
        *(f"  {entry.id}: {describe_needs(entry)}" for entry in found),
    ]


def describe_needs(entry: OSEntry) -> str:
    """What the checks of an entry need, and why."""
    reasons = entry.found_needs
    return "; ".join(
        f"{need} ({f'the check {reasons[need]}' if need in reasons else 'the data says so'})"
        for need in entry.needs
    )


async def check_entry(sandbox: Sandbox, entry: OSEntry) -> ExampleResult:
    """Play an entry with its example, and by doing nothing."""
    if missing := [script.missing for script in entry.scripts if script.missing]:
        return ExampleResult(
            "init", f"the file {missing[0]} is missing, or lies outside the folder of the dataset"
        )
    if foreign := [each.language for each in entry.scripts if each.language not in LANGUAGES]:
        return ExampleResult(
            "language", f"a script is written in {foreign[0]}; only bash and python are supported"
        )
    name = f"entry {entry.id}"

    def in_shell(player: str) -> Run:
        async def run(program: Mapping[str, Any]) -> Any:
            shell = {"shell": f"{name}, {player}"} if program.get("kind") == "shell" else {}
            return await sandbox.execute({**program, **shell})

        return run

    try:
        result = await try_example(in_shell("example"), entry)
        if not result.reason:
            run = in_shell("nothing")
            await prepare_machine(run, entry)
            if (await judge_machine(run, entry, None)).solved:
                return ExampleResult("check", INERT)
        return result
    except SandboxError as fault:
        return ExampleResult("check", str(fault))
    finally:
        for player in ("example", "nothing"):
            await sandbox.close_shells(f"{name}, {player}")


async def try_example(run: Run, entry: OSEntry) -> ExampleResult:
    """Play the example as a model would: run it in the shell and answer with its output. Standard
    error is not part of the answer."""
    prepared = await prepare_machine(run, entry)
    unprepared = describe_unprepared(entry, prepared)
    if entry.needs_users and not prepared[0]["users"]:
        return ExampleResult("users", unprepared)
    if unprepared:
        return find_reason(entry, prepared, [], ExampleResult("init", unprepared))
    if entry.example is None:
        return ExampleResult()
    done = await run({**command_request(entry, example_command(entry)), "timeout": SECONDS})
    verdict = await judge_machine(run, entry, done["output"].strip() or None)
    if verdict.solved:
        return ExampleResult()
    if verdict.fault:
        return ExampleResult("time", verdict.fault)
    if verdict.result is None:
        said = f"the example solution prints {shorten(done['output'].strip())!r}"
        return find_reason(entry, prepared, [done], ExampleResult("check", said))
    said = f"check {verdict.script} of {len(entry.checks)}: exit {verdict.result['status']}"
    return find_reason(
        entry,
        prepared,
        [done, verdict.result],
        ExampleResult("check", said + last_line(verdict.result)),
    )


def find_reason(
    entry: OSEntry,
    prepared: Sequence[Mapping[str, Any]],
    rest: Sequence[Mapping[str, Any]],
    otherwise: ExampleResult,
) -> ExampleResult:
    """The reason for a failure, if the results show one."""
    if any(each["timed_out"] for each in prepared):
        return ExampleResult("time", "preparing the machine took too long")
    if any(each["timed_out"] for each in rest):
        return ExampleResult("time", "the example solution or a check took too long")
    for text in (f"{each.get('errors', '')}{each['output']}" for each in (*prepared, *rest)):
        if lines := [line for line in text.splitlines() if OFFLINE.search(line)]:
            return ExampleResult(
                "network", f"needs a network connection: {shorten(lines[0].strip())}"
            )
    if any(FETCHES.search(script.code) for script in entry.scripts):
        return ExampleResult(
            "network", "needs a network connection to install or download something"
        )
    if failed := [each for each in prepared if each["status"]]:
        return ExampleResult("init", f"exit {failed[0]['status']}{last_line(failed[0])}")
    return otherwise


def last_line(result: Mapping[str, Any]) -> str:
    """The last line of a script's output, after a colon."""
    text = result.get("errors") or result["output"]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {shorten(lines[-1])}" if lines else ""
