"""How playing ended, and what can be done about it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from parley.errors import ParticipantError, Refused
from parley.money import Prices, costs, money, total
from parley.rules.task import Task
from parley.store import RunReader, RunRef
from parley.tables import plural, shorten

if TYPE_CHECKING:
    from parley.runs.budget import Budget

SHOWN = 400  # characters of a fault


@dataclass(frozen=True)
class Ending:
    """How playing ended: done, or stopped and why; failed if a task or the store is at fault."""

    ref: RunRef
    state: Literal["done", "stopped", "failed"]
    status: str | None
    reason: str
    flag: str = ""  # the option whose bound was reached
    least: str = ""  # the smallest value of it with which going on is of use
    # what must be changed before going on is of use; {resume} stands for how to go on then
    remedy: str = ""
    looking: bool = False  # it ended before the run itself began, while items were looked for
    task: type[Task] | None = None  # the class that was played


def lasts(fault: Exception) -> bool:
    """Whether asking again does not mend a fault."""
    return isinstance(fault, Refused)


def reasons(faults: Counter[str]) -> str:
    """Why matches could not be played, the commonest first."""
    shown = [
        f"{shorten(fault, SHOWN)} ({plural(count, 'match', 'matches')})"
        for fault, count in faults.most_common(3)
    ]
    rest = len(faults) - len(shown)
    return "; ".join(shown) + (f"; and {plural(rest, 'more kind')} of fault" if rest else "")


def remedy(faults: Collection[ParticipantError]) -> str:
    """What to do about faults that asking again does not mend, or not at once."""
    lasting = [fault for fault in faults if lasts(fault)]
    if not lasting:
        if not faults or any(fault.kind != "unreachable" for fault in faults):
            return ""
        return "resume once the endpoint answers: {resume}; for another base_url, start a new run"
    if all(fault.kind != "address" for fault in lasting):
        return "asking again will not help until this is fixed; then resume with: {resume}"
    hint = next((f" ({fault.hint})" for fault in lasting if fault.hint), "")
    return (
        f"a model's name and its base_url are part of the run: start a new run with the right "
        f"ones{hint}"
    )


def least(limit: str, needed: float, budget: Budget | None) -> str:
    """The smallest bound with which at least one more call can leave."""
    if budget is None or not needed:
        return ""
    if limit == "--max-calls":
        return str(budget.calls + math.ceil(needed))
    return upwards(budget.usd + needed) if limit == "--budget-usd" else ""


def upwards(usd: float) -> str:
    """USD for people, rounded so that it is surely enough."""
    digits = 2 if usd >= 1 else 4
    return f"{math.ceil(usd * 10**digits + 1) / 10**digits:.{digits}f}"


def uncounted(reader: RunReader, prices: Prices, spent: float) -> str:
    """What to say where endpoints counted no tokens, so that what was set aside is taken as
    spent."""
    rows = [row for row in reader.usage_by_model() if row.counted < row.calls]
    rows = [row for row in rows if (price := prices.of(row.alias)) is not None and not price.free]
    if not rows:
        return ""
    names, calls = (
        ", ".join(sorted({row.alias for row in rows})),
        sum(row.calls - row.counted for row in rows),
    )
    aside = max(0.0, spent - (total(costs(reader, prices)).at_least or 0.0))
    return (
        f"the endpoint of {names} counted no tokens in {plural(calls, 'call')}: what was set aside "
        f"for them at the most, {money(aside)} USD, is taken as spent"
    )
