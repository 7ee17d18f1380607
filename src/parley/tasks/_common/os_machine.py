"""Prepare the machine of a command-line task, and check it at the end. The rule calls this through
its referee, `parley datasets check` directly."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parley.rules.items.os_entry import OSEntry, ShellScript

Run = Callable[[Mapping[str, Any]], Awaitable[Any]]
LANGUAGES = ("bash", "python")
SECONDS = 180  # timeout for a script of the task
LONGEST = 20_000  # characters of an answer or output that are passed to a check
IN_BACKGROUND = re.compile(r"(?<![&>])&(?![&>])")
WAIT = "sleep 0.5\n"
NOTHING = ShellScript("true")
# an exception ends the program: it must not look like an answer that does not match
SEARCH = """\
import os, re
try:
    print(re.search({pattern!r}, {answer!r}) is not None)
except BaseException:
    os._exit(1)"""


@dataclass(frozen=True)
class MachineVerdict:
    """Whether a task was solved; if not, the number of the check that failed (from 1) and its
    result, or why the answer could not be matched."""

    solved: bool
    script: int = 0
    result: Mapping[str, Any] | None = None
    fault: str = ""


def script_request(entry: OSEntry, do: str, script: ShellScript) -> dict[str, Any]:
    """The request that makes a shell run a script of the task."""
    return {
        "kind": "shell",
        "do": do,
        "command": script.code,
        "language": script.language,
        "timeout": SECONDS,
        "home": entry.home,
        "folder": entry.folder,
    }


def command_request(entry: OSEntry, command: str) -> dict[str, Any]:
    """The request that makes a shell run a command of the model."""
    return {
        "kind": "shell",
        "do": "run",
        "command": command,
        "home": entry.home,
        "folder": entry.folder,
    }


def as_command(script: ShellScript) -> str:
    """A script as a bash command."""
    if script.language == "bash":
        return script.code
    quoted = script.code.replace("'", "'\\''")
    return f"python3 -c '{quoted}'"


def example_command(entry: OSEntry) -> str:
    """The example of an entry as a bash command. Its error output is dropped, and processes that
    were started in the background get time to begin."""
    if entry.example is None:
        return ""
    waits = any(IN_BACKGROUND.search(script.code) for script in entry.init)
    quoted = as_command(entry.example).replace("'", "'\\''")
    return f"{WAIT if waits else ''}eval '{quoted}' 2> /dev/null"


async def prepare_machine(run: Run, entry: OSEntry) -> list[Mapping[str, Any]]:
    """Run the scripts that prepare the machine and return their results. There is always at least
    one result, which shows whether the machine has several users."""
    found = [
        await run(script_request(entry, "prepare", script)) for script in entry.init or (NOTHING,)
    ]
    if entry.start is not None:
        found.append(await run(command_request(entry, as_command(entry.start))))
    return found


def describe_unprepared(entry: OSEntry, prepared: Sequence[Mapping[str, Any]]) -> str:
    """Why a machine is not in the state that its task needs; empty if it is."""
    if entry.needs_users and not prepared[0]["users"]:
        return (
            "this item needs several users on the machine, which only root can set up: run "
            "Parley as root"
        )
    failed = [each for each in prepared if each["status"] != 0]
    if failed and entry.is_judged_by_state:
        lines = str(failed[0].get("errors", failed[0]["output"])).strip().splitlines()
        said = f": {lines[-1]}" if lines else ""
        return f"preparing the machine failed (exit {failed[0]['status']}{said})"
    return ""


async def judge_machine(run: Run, entry: OSEntry, answer: str | None) -> MachineVerdict:
    """Check whether a task was solved. Each check gets the answer (or the text `None`) and the
    output of all checks before it; the first check that fails decides."""
    if entry.regex:
        return MachineVerdict(False) if answer is None else await match_pattern(run, entry, answer)
    if entry.answer is not None:
        return MachineVerdict(answer is not None and is_matched(entry, answer))
    arguments = ["None" if answer is None else fit_argument(answer)]
    for number, check in enumerate(entry.checks, 1):
        script = check or entry.example
        assert script is not None  # OSEntry refuses a null check without an example
        request = {**script_request(entry, "check", script), "arguments": arguments}
        if entry.is_unprotected:
            request["live" if entry.is_checked_live else "proc"] = True
        result = await run(request)
        if result["status"] != 0:
            return MachineVerdict(False, number, result)
        arguments = [*arguments, fit_argument(result["output"])]
    return MachineVerdict(True)


async def match_pattern(run: Run, entry: OSEntry, answer: str) -> MachineVerdict:
    """Search an answer for the pattern of its entry. This is a program in the sandbox, because some
    patterns take years: there it has limits, and the record keeps how it ended."""
    code = SEARCH.format(pattern=entry.regex, answer=answer)
    found = await run({"code": code, "cases": [("", "True")]})
    fault = (
        f"the pattern of item {entry.id} could not be matched: {found['faults'][0]}"
        if found["end"]
        else ""
    )
    return MachineVerdict(found["passed"], fault=fault)


def is_matched(entry: OSEntry, answer: str) -> bool:
    """Whether an answer matches the right answer of its entry."""
    wanted = entry.answer or ""
    return answer.strip() == wanted.strip() if entry.strip else answer == wanted


def fit_argument(text: str) -> str:
    """Make a text fit for a program argument: no zero bytes, limited length."""
    return text.replace("\0", "")[:LONGEST]
