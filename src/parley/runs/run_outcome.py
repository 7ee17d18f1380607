"""How a run ended, and what the user can do about it."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from parley.errors import ParleyError, ParticipantError, Refused
from parley.money import Prices, cost_rows, format_usd, total_cost
from parley.rules.task import Task
from parley.store.reader import RunReader
from parley.store.types import RunRef
from parley.tables import plural, shorten

if TYPE_CHECKING:
    from parley.runs.budget import Budget

SHOWN = 400  # characters of a fault
# what to do where people have to vote before the next stage
VOTE_FIRST = "vote with: {vote} --annotator NAME; then resume with: {resume}"


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended: done, stopped with a reason, or failed because of an error in the task."""

    ref: RunRef
    state: Literal["done", "stopped", "failed"]
    status: str | None
    reason: str
    flag: str = ""  # the option whose limit was reached
    minimum_to_resume: str = ""  # the smallest value of that option with which a run can go on
    # what to do before you resume; {resume} and {vote} stand for the commands
    advice: str = ""
    during_screening: bool = False  # it ended while items were screened
    task: type[Task] | None = None  # the class that was played
    # what stopped it, with its traceback for the author of the code that raised it
    fault: ParleyError | None = None
    result: Any = None  # of `RunContext.summarise`, if it was called


def raised_by_code(fault: BaseException | None) -> bool:
    """Whether a bot or a function raised an exception of its own, which its author must fix."""
    return isinstance(fault, ParticipantError) and fault.kind == "code"


def is_permanent(fault: Exception) -> bool:
    """Whether a retry cannot help."""
    return isinstance(fault, Refused)


def format_reasons(faults: Counter[str]) -> str:
    """Say why matches could not be played, the most frequent reason first."""
    shown = [
        f"{shorten(fault, SHOWN)} ({plural(count, 'match', 'matches')})"
        for fault, count in faults.most_common(3)
    ]
    rest = len(faults) - len(shown)
    return "; ".join(shown) + (f"; and {plural(rest, 'other error')}" if rest else "")


def find_advice(faults: Collection[ParticipantError], task_file: str = "") -> str:
    """What to do about errors that a retry does not fix, or not at once. `task_file` is the file of
    the task, where it is not an installed one: its bots may be at fault."""
    if any(raised_by_code(fault) for fault in faults):
        named = f" --task {shlex.quote(task_file)}" if task_file else ""
        return (
            f"fix the code, then resume with: {{resume}}{named} (if you change the task's rule, "
            "start a new run instead; the matches already played stay in the run's file)"
        )
    lasting = [fault for fault in faults if is_permanent(fault)]
    if not lasting:
        if not faults or any(fault.kind != "unreachable" for fault in faults):
            return ""
        return (
            "resume once the endpoint answers: {resume}; if its address has changed: {resume} -M "
            "ALIAS.base_url=URL"
        )
    if all(fault.kind != "address" for fault in lasting):
        return "a retry does not help; fix the cause first, then resume with: {resume}"
    hint = next((f" ({fault.hint})" for fault in lasting if fault.hint), "")
    return (
        f"if the model's name is wrong, start a new run with the right name{hint}, because a "
        "run keeps its model names; if its base_url is wrong, resume with: {resume} -M "
        "ALIAS.base_url=URL"
    )


def find_minimum_to_resume(limit: str, needed: float, budget: Budget | None) -> str:
    """The smallest value of a limit with which at least one more call can be made."""
    if budget is None or not needed:
        return ""
    if limit == "--max-calls":
        return str(budget.total_calls + math.ceil(needed))
    return round_up(budget.total_usd + needed) if limit == "--budget-usd" else ""


def round_up(usd: float) -> str:
    """Format USD, rounded up so that it is surely enough."""
    digits = 2 if usd >= 1 else 4
    return f"{math.ceil(usd * 10**digits + 1) / 10**digits:.{digits}f}"


def describe_uncounted(reader: RunReader, prices: Prices, spent: float) -> str:
    """The notice for endpoints that counted no tokens: what was reserved counts as spent."""
    rows = [row for row in reader.usage.by_model() if row.counted < row.calls]
    rows = [row for row in rows if (price := prices.of(row.alias)) is not None and not price.free]
    if not rows:
        return ""
    names, calls = (
        ", ".join(sorted({row.alias for row in rows})),
        sum(row.calls - row.counted for row in rows),
    )
    aside = max(0.0, spent - (total_cost(cost_rows(reader, prices)).at_least or 0.0))
    return (
        f"the endpoint of {names} reported no token counts for {plural(calls, 'call')}, so "
        f"Parley counts the full amount reserved for them ({format_usd(aside)} USD) as spent"
    )
