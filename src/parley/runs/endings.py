"""How playing ended, and what can be done about it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from parley.errors import Refused
from parley.money import Prices, costs, money, total
from parley.store.sqlite.reader import Archive
from parley.tables import clip, plural

if TYPE_CHECKING:
    from parley.runs.budget import Budget

SHOWN = 400  # characters of a fault
NEXT = re.compile(r"may cost up to ([\d.,e+-]+)$")
NAMED = re.compile(
    r"check the model's name and base_url|is no address that can be asked|it wants to be asked at"
)
UNREACHED = "Cannot connect to host"
BARE = re.compile(r"https?://[^/\s]+/(?:chat/completions|completions|responses|messages)\b")


@dataclass(frozen=True)
class Ending:
    """How playing ended: done, or stopped and why; failed if a task or the store is at fault."""

    path: Path
    state: Literal["done", "stopped", "failed"]
    status: str | None
    reason: str
    flag: str = ""  # the option whose bound was reached
    least: str = ""  # the smallest value of it with which going on is of use
    # what must be changed before going on is of use; {resume} stands for how to go on then
    remedy: str = ""
    looking: bool = False  # it ended before the run itself began, while items were looked for


def lasts(fault: Exception) -> bool:
    """Whether asking again does not mend a fault."""
    return isinstance(fault, Refused)


def reasons(faults: Counter[str]) -> str:
    """Why matches could not be played, the commonest first."""
    shown = [
        f"{clip(fault, SHOWN)} ({plural(count, 'match', 'matches')})"
        for fault, count in faults.most_common(3)
    ]
    rest = len(faults) - len(shown)
    return "; ".join(shown) + (f"; and {plural(rest, 'more kind')} of fault" if rest else "")


def remedy(lasting: Collection[str], faults: Collection[str] = ()) -> str:
    """What to do about faults that asking again does not mend, or not at once."""
    if not lasting:
        unreached = bool(faults) and all(UNREACHED in fault for fault in faults)
        return (
            (
                "once somebody answers there, go on with: {resume}; for another "
                "base_url, start a new run"
            )
            if unreached
            else ""
        )
    if not any(NAMED.search(fault) for fault in lasting):
        return "asking again will not help before that is mended; then go on with: {resume}"
    hint = (
        " (did you leave out /v1 at the end of base_url?)"
        if any(BARE.search(fault) for fault in lasting)
        else ""
    )
    return (
        f"a model's name, and a base_url given with it, are part of the run: start a new run "
        f"with the right ones{hint}"
    )


def least(flag: str, reason: str, budget: Budget | None) -> str:
    """The smallest bound with which at least one more call can leave."""
    if budget is None:
        return ""
    if flag == "--max-calls":
        return str(budget.calls + 1)
    if flag == "--budget-usd" and (found := NEXT.search(reason)):
        return upwards(budget.usd + float(found[1].replace(",", "")))
    return ""


def upwards(usd: float) -> str:
    """USD for people, rounded so that it is surely enough."""
    digits = 2 if usd >= 1 else 4
    return f"{math.ceil(usd * 10**digits + 1) / 10**digits:.{digits}f}"


def uncounted(archive: Archive, prices: Prices, spent: float) -> str:
    """What to say where endpoints counted no tokens, so that what was set aside is taken as
    spent."""
    rows = [row for row in archive.spending() if row["counted"] < row["calls"]]
    rows = [
        row for row in rows if (price := prices.of(row["alias"])) is not None and not price.free
    ]
    if not rows:
        return ""
    names, calls = (
        ", ".join(sorted({row["alias"] for row in rows})),
        sum(row["calls"] - row["counted"] for row in rows),
    )
    aside = max(0.0, spent - (total(costs(archive, prices)).at_least or 0.0))
    return (
        f"the endpoint of {names} counted no tokens in {plural(calls, 'call')}: what was set aside "
        f"for them at the most, {money(aside)} USD, is taken as spent"
    )
