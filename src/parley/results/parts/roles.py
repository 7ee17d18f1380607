"""Role tables as tables: who scored how much with whom (DynaEval, tables 1 to 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parley.results.parts.courses import fixed
from parley.tables import Table, nothing, shown

Data = Mapping[str, Any]
SIDES = ("first", "second")


def roles(data: Data) -> list[Table]:
    """Who scored how much against whom: first seats down, second seats across, both scores and n in
    a cell."""
    raced = data["stability"] is not None and data["stability"]["plan"] == "race"
    apart = " that count for each: who has left the race does not" if raced else ""
    found = [
        each
        for table in data["tables"]
        for each in role_table(table, table["metric"], apart, fixed(data))
    ]
    return found or [nothing("role tables are for matches of two")]


def corpus(data: Data) -> list[Table]:
    """The same with corpus-level scores: all texts of a pair are scored as one."""
    found = [
        each
        for table in data["corpus"]
        for each in role_table(
            table, f"corpus-level {table['metric']} ({table['signature']})", "", fixed(data)
        )
    ]
    return found or [
        nothing("no texts of this task are held against references, or nothing was played by two")
    ]


def role_table(table: Data, what: str, apart: str, sure: str) -> list[Table]:
    """One role table, and its intervals."""
    cells, digits = (
        {(each["first"], each["second"]): each["cell"] for each in table["cells"]},
        table["digits"],
    )
    aliases, every = list(table["rows"]), table["all"]
    header = [f"{table['first']} ↓  {table['second']} →", *aliases, f"mean {table['first']}"]
    rows = [
        [
            one,
            *(met(cells.get((one, other)), digits) for other in aliases),
            margin(table["rows"][one], digits),
        ]
        for one in aliases
    ]
    below = [margin(table["columns"][one], digits) for one in aliases]
    rows.append(
        [
            f"mean {table['second']}",
            *below,
            f"{margin(every['first'], digits)} / {margin(every['second'], digits)}",
        ]
    )
    ends = [
        [
            one,
            *(ranges(cells.get((one, other)), digits) for other in aliases),
            edge(table["rows"][one], digits),
        ]
        for one in aliases
    ]
    below = [edge(table["columns"][one], digits) for one in aliases]
    ends.append(
        [
            f"mean {table['second']}",
            *below,
            f"{edge(every['first'], digits)} / {edge(every['second'], digits)}",
        ]
    )
    note = f"{what}: {table['first']} / {table['second']} (matches{apart})"
    alike = (
        "means of rows and columns weigh partners alike, those of the results weigh blocks alike"
    )
    return [
        Table(header, rows, note=f"{note}; {alike}"),
        Table(
            header,
            ends,
            note=(
                f"95% intervals of the same, over blocks; of a mean, "
                f"where every block has all partners{sure}"
            ),
        ),
    ]


def ranges(cell: Data | None, digits: int) -> str:
    """The intervals of a cell."""
    if cell is None:
        return "-"
    return " / ".join(
        edge({end: cell[f"{side}_{end}"] for end in ("low", "high")}, digits) for side in SIDES
    )


def edge(found: Data, digits: int) -> str:
    """An interval, short."""
    return (
        "–"
        if found["low"] is None
        else f"{shown(found['low'], digits)}…{shown(found['high'], digits)}"
    )


def met(cell: Data | None, digits: int) -> str:
    """A cell of a role table: both scores, and n."""
    if cell is None:
        return "-"
    first, second = (cell["matches"] - idle for idle in cell["idle"])
    scores = f"{shown(cell['first'], digits)} / {shown(cell['second'], digits)}"
    return f"{scores} ({first if first == second else f'{first}, {second}'})"


def margin(found: Data, digits: int) -> str:
    """A mean at the edge of a role table, and n."""
    return "-" if found["mean"] is None else f"{shown(found['mean'], digits)} ({found['matches']})"


def flat(table: Data) -> list[dict[str, Any]]:
    """A role table in rows: its cells, then the means of rows, of columns and of all, where the
    other is `mean`."""
    about = {
        "metric": table["metric"],
        "first_role": table["first"],
        "second_role": table["second"],
    }
    rows = []
    for each in table["cells"]:
        if (cell := each["cell"]) is not None:
            facts = {f"{side}_mean": cell[side] for side in SIDES}
            ends = {
                f"{side}_{end}": cell[f"{side}_{end}"] for side in SIDES for end in ("low", "high")
            }
            counts = {
                f"{side}_matches": cell["matches"] - idle
                for side, idle in zip(SIDES, cell["idle"], strict=True)
            }
            rows.append(
                {
                    **about,
                    "first": each["first"],
                    "second": each["second"],
                    **facts,
                    **ends,
                    **counts,
                    "blocks": cell["blocks"],
                }
            )
    edges = [(SIDES[0], alias, each) for alias, each in table["rows"].items()]
    edges += [(SIDES[1], alias, each) for alias, each in table["columns"].items()]
    for side, alias, each in [*edges, *((side, "mean", table["all"][side]) for side in SIDES)]:
        blank = dict.fromkeys([name for name in (rows[0] if rows else about) if name not in about])
        facts = {f"{side}_{name}": each[name] for name in ("mean", "low", "high", "matches")}
        if each["mean"] is not None:
            rows.append({**about, **blank, "first": "mean", "second": "mean", side: alias, **facts})
    return rows
