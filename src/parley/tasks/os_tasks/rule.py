"""Command-line tasks: a model thinks, runs scripts in its own shell, and answers or reports that it
is done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from parley import Example, Forfeit, Items, Metric, Note, Prompt, Referee, Role, Scores, Seat, Task
from parley.errors import Unreadable
from parley.rules.items.os_entry import OSEntry
from parley.rules.parsing import find_fenced_blocks
from parley.rules.task import name_unprotected
from parley.tasks._common.os_machine import (
    LANGUAGES,
    command_request,
    describe_unprepared,
    judge_machine,
    prepare_machine,
)

# A match whose checks the model could forge has the second score, and not the first.
SUCCESS, UNPROTECTED = "success", name_unprotected("success")
LONG, SHOWN = 800, 780  # an output longer than LONG characters is cut to SHOWN
End = Literal["answered", "finished", "gave up", "out of turns"]


@dataclass(frozen=True)
class Action:
    """The action of a model in one turn."""

    kind: Literal["bash", "answer", "finish"]
    text: str = ""  # the script, or the answer


@dataclass(frozen=True)
class ActionReader:
    """Reads thoughts and then one action: a bash script, an answer, or `finish`."""

    hint: str = (
        "Reply with a line `Think: …` and then one action: `Act: bash` with a fenced block, "
        "`Act: answer(…)` or `Act: finish`."
    )
    schema: None = None

    def read(self, text: str) -> Action:
        text = text.replace("\r\n", "\n")
        # ignore anything inside a script that looks like an action
        outside = FENCED.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
        found = list(ACT.finditer(outside))
        if not found:
            raise Unreadable(
                "there is no line that begins with `Act:` and names bash, answer or finish"
            )
        act = found[-1]
        match act[1].lower():
            case "finish":
                return Action("finish")
            case "answer":
                return Action("answer", extract_answer(text[act.end(1) :]))
            case _:
                return Action("bash", extract_script(text, act.end()))

    def write(self, value: Action, reason: str = "") -> str:
        act = {
            "bash": f"bash\n\n```bash\n{value.text}\n```",
            "answer": f"answer({value.text})",
            "finish": "finish",
        }
        return f"Think: {reason}\n\nAct: {act[value.kind]}"

    def sample(self, rng: Random) -> Action:
        return rng.choice(
            (Action("bash", f"echo {rng.randint(0, 9)}"), Action("answer", "3"), Action("finish"))
        )


ACT = re.compile(
    r"^[ \t>*_`#-]*act(?:ion)?[ \t*_`]*:[ \t*_`]*(bash|answer|finish)\b", re.IGNORECASE | re.M
)
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
SHELLS = ("bash", "sh", "shell", "")


def extract_answer(rest: str) -> str:
    """The text in the brackets of an answer. If it has several lines, the last bracket ends it."""
    line = rest.partition("\n")[0]
    for words in (line, rest):
        left, right = words.find("("), words.rfind(")")
        if words.lstrip(" \t*_`").startswith("(") and left < right:
            return words[left + 1 : right]
    raise Unreadable("an answer stands in brackets: `Act: answer(42)`")


def extract_script(text: str, after: int) -> str:
    """The script of an action: the fenced blocks after it, or those before it if there are none."""
    for part in (text[after:], text[:after]):
        blocks = [body for tag, body in find_fenced_blocks(part) if tag.lower() in SHELLS]
        if script := "\n\n".join(blocks).strip("\n"):
            if part.count("```") % 2:  # an incomplete script may do harm
                raise Unreadable("the fenced block with the script is not closed by ```")
            return script
    raise Unreadable("`Act: bash` wants a script in a fenced block that begins with ```bash")


@dataclass(frozen=True)
class MachineEnd(Note, kind="os_tasks.end"):
    """How a match ended, after how many turns, and whether the task was solved."""

    end: End
    turns: int
    solved: bool
    failed_check: int  # number of the check that failed, from 1; 0: none failed or none was run
    unprotected: bool  # whether the model could forge the result of the checks


@dataclass(frozen=True)
class OSTasks(Task):
    """Solve tasks at the command line of a Linux machine (AgentBench's OS tasks, LLM-Evolve's third benchmark).

    turns        maximum number of actions
    shots        number of worked examples before the task: 0 or 1
    description  description of the task
    output       output of a script, cut if it is long
    reason       why the shell was restarted
    """  # noqa: E501

    name = "os_tasks"
    turns: int = 8
    shots: Literal[0, 1] = 1

    roles = {"agent": Role()}
    items = Items(OSEntry, stratum="subject")
    runs_code = True
    uses_shell = True
    temperature_zero = True

    async def play(self, referee: Referee, agent: Seat) -> Scores:
        entry: OSEntry = referee.item
        prepared = await prepare_machine(referee.run, entry)
        if fault := describe_unprepared(entry, prepared):
            raise Forfeit(f"this item cannot be played on this machine: {fault}")
        referee.tell(agent, referee.render(RULES))
        words = referee.render(TASK, description=entry.description)
        end: End = "out of turns"
        turn, answer = 0, None
        while turn < self.turns:
            turn += 1
            action = await referee.ask(
                agent,
                words,
                expect=ActionReader(),
                default=None,
                examples=demonstrate(referee) if self.shots and turn == 1 else (),
                attempts=2,
            )
            if action is None or action.kind != "bash":
                end = ENDS[action.kind] if action is not None else "gave up"
                answer = action.text if action is not None and action.kind == "answer" else None
                break
            found = await referee.run(command_request(entry, action.text))
            words = show_output(referee, found)

        done = end in ("answered", "finished")
        verdict = await judge_machine(referee.run, entry, answer) if done else None
        solved = verdict is not None and verdict.solved
        failed = verdict.script if verdict is not None else 0
        if verdict is not None and verdict.fault:
            referee.note(fault=f"{verdict.fault}; the answer counts as wrong")
        referee.note(MachineEnd(end, turn, solved, failed, entry.is_unprotected))
        metric = UNPROTECTED if entry.is_unprotected else SUCCESS
        return {agent: {metric: float(solved), "turns": float(turn)}}

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        return [
            Metric(SUCCESS, 0, 1, epsilon=0.05, success=1, spread=0.5, digits=3),
            Metric(UNPROTECTED, 0, 1, epsilon=0.05, success=1, spread=0.5, digits=3),
            Metric("turns", 0, self.turns, epsilon=0.5, better="lower"),
        ]

    def cue(self, item: OSEntry) -> str:
        return item.description

    def reject_reason(self, item: OSEntry) -> str:
        if missing := [script.missing for script in item.scripts if script.missing]:
            return f"whose file {missing[0]} is missing, or lies outside the folder of the dataset"
        if foreign := [each.language for each in item.scripts if each.language not in LANGUAGES]:
            return f"with a script written in {foreign[0]}, which Parley cannot run"
        return ""

    def unused_prompts(self, seats: Mapping[str, int]) -> list[str]:
        return [] if self.shots else ["example_task", "example_output"]

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ValueError(f"`turns` must be at least 1, not {self.turns}")
        if self.shots not in (0, 1):
            raise ValueError(f"`shots` must be 0 or 1, not {self.shots}")


ENDS: Mapping[str, End] = {"answer": "answered", "finish": "finished"}


def show_output(referee: Referee, found: Mapping[str, Any]) -> str:
    """The message that shows a model the output of its script."""
    text = str(found["output"]).replace("\0", "\ufffd").rstrip("\n")
    if len(text) > LONG:
        text = text[:SHOWN] + referee.render(CUT)
    words = referee.render(OUTPUT, output=text) if text.strip() else referee.render(SILENT)
    if found["timed_out"]:
        words += referee.render(LATE)
    if found["restarted"]:
        words += referee.render(RESTARTED, reason=found["restarted"])
    return words


def demonstrate(referee: Referee) -> list[Example]:
    """A worked example: one task from beginning to end, turn by turn."""
    form = ActionReader()
    look = "The names are in one folder, so I list the files there by their ending and count them."
    script = "find /etc -maxdepth 1 -type f -name '*.conf' | wc -l"
    found = "The script has counted 14 files, which is what was asked."
    return [
        Example(
            referee.render(TASK, description=referee.render(EXAMPLE_TASK)),
            form.write(Action("bash", script), look),
            form.hint,
        ),
        Example(
            referee.render(OUTPUT, output=referee.render(EXAMPLE_OUTPUT)),
            form.write(Action("answer", "14"), found),
            form.hint,
            continues=True,
        ),
    ]


RULES = Prompt(
    "rules",
    """\
You work at the command line of a Linux machine as root. You are given a task: a question that you answer by looking at \
the machine, or something that you change on it. You have {turns} turns. In each turn you think first, and then take one of \
three actions:

- Run a script in bash. What it prints is shown to you in the next turn. The shell stays the same from turn to turn, and so do its variables \
and its working directory. Nobody is there to type anything while a script runs, so call no program that waits for input.
- Answer the question. What stands in the brackets is compared as it is, so give the number, name or path alone.
- Finish, when the task was to change something and you have done it.

An answer and a finish end the task; until one of them comes, nothing is counted as done. Write your thoughts and your action in this form:

Think: what you know, and what you do next

Act: bash

```bash
the script
```

or, instead of the script, `Act: answer(42)` or `Act: finish`.""",  # noqa: E501
)
TASK = Prompt("task", "Your task: {description}")
OUTPUT = Prompt("output", "The script has printed:\n{output}")
SILENT = Prompt("silent", "The script has printed nothing.")
CUT = Prompt("cut", "\n[The output is longer; the rest is left out.]")
LATE = Prompt("late", "\nIt took too long and was stopped.")
RESTARTED = Prompt(
    "restarted",
    "\nThe shell had to be started anew ({reason}): files are still there, variables are not.",
)
EXAMPLE_TASK = Prompt(
    "example_task",
    "How many files directly in /etc have names that end in .conf? Answer with the number.",
)
EXAMPLE_OUTPUT = Prompt("example_output", "14")
