"""Whether tasks at the command line can be played here: each example must pass, and doing nothing
must not."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from parley.errors import SandboxError
from parley.rules.items import OSEntry
from parley.sandbox.shells import Shells
from parley.tables import plural, shorten
from parley.tasks._common.os_machine import (
    LANGUAGES,
    Run,
    as_command,
    command_request,
    judge_machine,
    prepare_machine,
)

# What programs say that look for a network.
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
IN_BACKGROUND = re.compile(r"(?<![&>])&(?![&>])")
SETTLE = 0.5  # seconds for what was started in the background to be there; a model takes longer
SECONDS = 90  # for an example, which is a model's script
INERT = "passes although nothing is done"


class ExampleResult(NamedTuple):
    """What came of an entry's example: why it fails, in a word and in a sentence, or nothing."""

    reason: str = ""
    detail: str = ""


async def check_os_entries(
    entries: Sequence[OSEntry], told: Callable[[int], None]
) -> tuple[int, dict[str, str], tuple[str, ...]]:
    """How many entries have an example; what is wrong, by id; and a summary of the reasons."""
    shells, turns = Shells(), asyncio.Semaphore(max(2, os.cpu_count() or 1))
    found: dict[str, ExampleResult] = {}

    async def look(entry: OSEntry) -> None:
        async with turns:
            found[entry.id] = await check_entry(shells, entry)
            told(len(found))

    try:
        await asyncio.gather(*map(look, entries))
    finally:
        await shells.close()
    faults = {
        entry.id: f"{found[entry.id].reason}: {found[entry.id].detail}"
        for entry in entries
        if found[entry.id].reason
    }
    reasons = Counter(each.reason for each in found.values() if each.reason)
    examples = sum(entry.example is not None for entry in entries)
    summary = [f"examples: {examples} of {len(entries)}"]
    summary += [f"failed by reason: {', '.join(f'{n} {why}' for why, n in reasons.most_common())}"]
    return len(entries), faults, tuple(summary if reasons else summary[:1])


async def check_entry(shells: Shells, entry: OSEntry) -> ExampleResult:
    """Play an entry by its example, and by doing nothing."""
    if missing := [script.missing for script in entry.scripts if script.missing]:
        return ExampleResult("init", f"the file {missing[0]} is missing")
    if foreign := [each.language for each in entry.scripts if each.language not in LANGUAGES]:
        return ExampleResult("language", f"a script is in {foreign[0]}, which is not run here")
    name = f"entry {entry.id}"

    def in_shell(player: str) -> Run:
        async def run(program: Mapping[str, Any]) -> Any:
            return await shells.execute({**program, "shell": f"{name}, {player}"})

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
            await shells.close(f"{name}, {player}")


async def try_example(run: Run, entry: OSEntry) -> ExampleResult:
    """Do what the example does, as a model would: run it in the shell, and answer with what it
    prints."""
    prepared = await prepare_machine(run, entry)
    if entry.example is None:
        return ExampleResult()
    if any(IN_BACKGROUND.search(script.code) for script in entry.init):
        await asyncio.sleep(SETTLE)
    request = {**command_request(entry, as_command(entry.example)), "timeout": SECONDS}
    done = await run(request)
    verdict = await judge_machine(run, entry, done["output"].strip() or None)
    if verdict.solved:
        return ExampleResult()
    results = [*prepared, done, *([verdict.result] if verdict.result is not None else [])]
    texts = [f"{each.get('errors', '')}{each['output']}" for each in results]
    if entry.needs_users and not prepared[0]["users"]:
        return ExampleResult(
            "users", "it deals with several users; started by an ordinary user there is only one"
        )
    if late := [n for n, each in enumerate(results) if each["timed_out"]]:
        what = "init" if late[0] < len(prepared) else "the example or a check"
        return ExampleResult("time", f"{what} took too long")
    if offline := [text for text in texts if OFFLINE.search(text)]:
        line = next(line for line in offline[0].splitlines() if OFFLINE.search(line))
        return ExampleResult("network", f"there is none: {shorten(line.strip())}")
    if any(FETCHES.search(script.code) for script in (*entry.init, entry.example)):
        return ExampleResult("network", "there is none, and it installs or fetches something")
    if failed := [text for text, each in zip(texts, prepared, strict=False) if each["status"]]:
        return ExampleResult("init", f"exit {prepared[0]['status']}{last_line(failed[0])}")
    if verdict.result is None:
        return ExampleResult("check", f"the example prints {shorten(done['output'].strip())!r}")
    exit_status = f"script {verdict.script} of {plural(len(entry.checks), 'check')}"
    return ExampleResult(
        "check", f"{exit_status}, exit {verdict.result['status']}{last_line(texts[-1])}"
    )


def last_line(text: str) -> str:
    """The last line that was printed, after a colon."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {shorten(lines[-1])}" if lines else ""
