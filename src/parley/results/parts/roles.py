"""Role tables: scores by pairing of models (DynaEval, tables 1 to 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores, seat_name
from parley.results.types import Figure, HeatMap
from parley.statistics import role_tables
from parley.tables import Table, round_half_up

SIDES = ("first", "second")


@dataclass(frozen=True)
class PairScore:
    """The scores of two models that met in this order; `unscored`: for each side, matches whose
    score does not count."""

    first: float | None
    second: float | None
    matches: int
    blocks: int
    unscored: tuple[int, ...]
    first_low: float | None
    first_high: float | None
    second_low: float | None
    second_high: float | None


@dataclass(frozen=True)
class PairCell:
    """A cell of a role table; a pair that was not played has no score."""

    first: str
    second: str
    cell: PairScore | None


@dataclass(frozen=True)
class MarginMean:
    """The mean of a row or a column, with equal weight for every partner."""

    mean: float | None
    low: float | None
    high: float | None
    cells: int
    matches: int


@dataclass(frozen=True)
class TableMeans:
    """The means of the first and of the second seat over the whole table."""

    first: MarginMean
    second: MarginMean


@dataclass(frozen=True)
class RoleTableResult:
    """First seats down, second seats across."""

    metric: str
    digits: int
    first: str
    second: str
    cells: tuple[PairCell, ...]
    rows: dict[str, MarginMean]
    columns: dict[str, MarginMean]
    all: TableMeans


def make_pair_score(cell: role_tables.MeetingCell) -> PairScore:
    """A cell in its published form."""
    (low, high, _), (second_low, second_high, _) = cell.first_interval, cell.second_interval
    return PairScore(
        cell.first,
        cell.second,
        cell.matches,
        cell.blocks,
        cell.unscored,
        low,
        high,
        second_low,
        second_high,
    )


def make_margin(margin: role_tables.Margin) -> MarginMean:
    """A row or column mean in its published form."""
    low, high, _ = margin.interval
    return MarginMean(margin.mean, low, high, margin.cells, margin.matches)


def make_margins(margins: role_tables.Margins) -> dict[str, Any]:
    """All row and column means, as fields of a role table."""
    return {
        "rows": {alias: make_margin(each) for alias, each in margins.rows.items()},
        "columns": {alias: make_margin(each) for alias, each in margins.columns.items()},
        "all": TableMeans(make_margin(margins.first), make_margin(margins.second)),
    }


def compute_role_tables(run: RunScores) -> tuple[RoleTableResult, ...]:
    """A table for every metric, if matches have two seats."""
    if run.two_seats is None:
        return ()
    first, second = (seat_name(*seat) for seat in run.two_seats)
    listed = [*run.config.players, *run.config.excluded]
    found = {}
    for metric in run.metrics:
        met = role_tables.find_meetings(run.seated, run.two_seats, metric)
        if len(met.rows):
            bounds = run.bounds[metric]
            found[metric] = role_tables.make_role_table(met, listed, bounds, run.same)
    return tuple(
        RoleTableResult(
            metric=metric,
            digits=run.metrics[metric].digits,
            first=first,
            second=second,
            cells=tuple(
                PairCell(row, column, None if cell is None else make_pair_score(cell))
                for (row, column), cell in table.cells.items()
                if row != column
            ),
            **make_margins(table.margins),
        )
        for metric, table in found.items()
    )


def format_role_tables(found: Sequence[RoleTableResult], style: Style) -> list[Table]:
    """First seats down, second seats across, both scores and n in a cell."""
    apart = (
        " that count for each seat; a model's matches after it left the race do not count"
        if style.race
        else ""
    )
    return [
        each for table in found for each in format_role_table(table, table.metric, style, apart)
    ]


def format_role_table(
    table: RoleTableResult, what: str, style: Style, apart: str = ""
) -> list[Table]:
    """One role table, and its intervals."""
    cells, digits = {(each.first, each.second): each.cell for each in table.cells}, table.digits
    aliases, every = list(table.rows), table.all
    header = [f"{table.first} ↓  {table.second} →", *aliases, f"mean {table.first}"]
    rows = [
        [
            one,
            *(format_cell(cells.get((one, other)), digits) for other in aliases),
            format_margin(table.rows[one], digits),
        ]
        for one in aliases
    ]
    below = [format_margin(table.columns[one], digits) for one in aliases]
    both = f"{format_margin(every.first, digits)} / {format_margin(every.second, digits)}"
    rows.append([f"mean {table.second}", *below, both])
    ends = [
        [
            one,
            *(cell_intervals(cells.get((one, other)), digits) for other in aliases),
            margin_interval(table.rows[one], digits),
        ]
        for one in aliases
    ]
    below = [margin_interval(table.columns[one], digits) for one in aliases]
    both = f"{margin_interval(every.first, digits)} / {margin_interval(every.second, digits)}"
    ends.append([f"mean {table.second}", *below, both])
    note = f"{what}: {table.first} / {table.second} (matches{apart})"
    alike = (
        "row and column means give all partners equal weight, but the main table gives all "
        "blocks equal weight"
    )
    return [
        Table(header, rows, note=f"{note}; {alike}"),
        Table(
            header,
            ends,
            note=(
                "95% intervals of these scores, computed over blocks; a mean has an interval "
                f"only if every block has all partners{style.fixed_blocks_note}"
            ),
        ),
    ]


def role_table_figures(found: Sequence[RoleTableResult], style: Style) -> list[Figure]:
    """A heat map for each seat, of the metric that its role is ranked by."""
    figures: list[Figure] = []
    for table in found:
        for at, seat in enumerate((table.first, table.second)):
            role = seat.rstrip(" 0123456789")  # the first of two players is `players 1`
            if style.leading.get(role) == table.metric and (shown := make_pair_map(table, at)):
                figures.append(shown)
    return figures


def make_pair_map(table: RoleTableResult, at: int) -> HeatMap | None:
    """The scores of one seat by pair of models; None if the metric has no score for the seat."""
    side, seat = SIDES[at], (table.first, table.second)[at]
    known = {
        (each.first, each.second): each.cell
        for each in table.cells
        if each.cell is not None and getattr(each.cell, side) is not None
    }
    if not known:
        return None
    rows = tuple(alias for alias in table.rows if any(one == alias for one, _ in known))
    columns = tuple(alias for alias in table.rows if any(two == alias for _, two in known))
    values, low, high = (
        tuple(tuple(getattr(known.get((one, two)), name, None) for two in columns) for one in rows)
        for name in (side, f"{side}_low", f"{side}_high")
    )
    title = f"{seat.capitalize()}: {table.metric} by pair"
    best = max(known, key=lambda pair: getattr(known[pair], side))
    most = round_half_up(getattr(known[best], side), table.digits)
    alt = (
        f"{title}, {table.first} down and {table.second} across; the largest value is {most}, of "
        f"{best[0]} with {best[1]}"
    )
    axes = (table.first, table.second)
    return HeatMap(title, alt, table.metric, rows, columns, values, low, high, table.digits, *axes)


def cell_intervals(cell: PairScore | None, digits: int) -> str:
    """The intervals of a cell."""
    if cell is None:
        return "-"
    first = short_interval(cell.first_low, cell.first_high, digits)
    return f"{first} / {short_interval(cell.second_low, cell.second_high, digits)}"


def margin_interval(margin: MarginMean, digits: int) -> str:
    return short_interval(margin.low, margin.high, digits)


def short_interval(low: float | None, high: float | None, digits: int) -> str:
    """An interval in compact form."""
    return (
        "–"
        if low is None or high is None
        else f"{round_half_up(low, digits)}…{round_half_up(high, digits)}"
    )


def format_cell(cell: PairScore | None, digits: int) -> str:
    """A cell of a role table: both scores, and n."""
    if cell is None:
        return "-"
    first, second = (cell.matches - unscored for unscored in cell.unscored)
    scores = f"{round_half_up(cell.first, digits)} / {round_half_up(cell.second, digits)}"
    return f"{scores} ({first if first == second else f'{first}, {second}'})"


def format_margin(margin: MarginMean, digits: int) -> str:
    """A row or column mean, and n."""
    return (
        "-" if margin.mean is None else f"{round_half_up(margin.mean, digits)} ({margin.matches})"
    )


def role_table_rows(found: Sequence[RoleTableResult]) -> Rows:
    """The cells of role tables, then the row means, column means and total means, in which the
    other side is `mean`."""
    return [row for table in found for row in role_table_cells(table)]


def role_table_cells(table: RoleTableResult) -> list[dict[str, Any]]:
    """One role table in rows."""
    about = {"metric": table.metric, "first_role": table.first, "second_role": table.second}
    rows: list[dict[str, Any]] = [
        {
            **about,
            "first": each.first,
            "second": each.second,
            "first_mean": cell.first,
            "second_mean": cell.second,
            "first_low": cell.first_low,
            "first_high": cell.first_high,
            "second_low": cell.second_low,
            "second_high": cell.second_high,
            "first_matches": cell.matches - cell.unscored[0],
            "second_matches": cell.matches - cell.unscored[1],
            "blocks": cell.blocks,
        }
        for each in table.cells
        if (cell := each.cell) is not None
    ]
    edges = [(SIDES[0], alias, each) for alias, each in table.rows.items()]
    edges += [(SIDES[1], alias, each) for alias, each in table.columns.items()]
    edges += [(SIDES[0], "mean", table.all.first), (SIDES[1], "mean", table.all.second)]
    blank: Mapping[str, Any] = dict.fromkeys(
        name for name in (rows[0] if rows else about) if name not in about
    )
    for side, alias, margin in edges:
        if margin.mean is not None:
            facts = {
                f"{side}_mean": margin.mean,
                f"{side}_low": margin.low,
                f"{side}_high": margin.high,
                f"{side}_matches": margin.matches,
            }
            rows.append({**about, **blank, "first": "mean", "second": "mean", side: alias, **facts})
    return rows


PARTS = (
    Part(
        "roles",
        "Scores by pairing",
        tuple[RoleTableResult, ...],
        compute_role_tables,
        tables=format_role_tables,
        rows=role_table_rows,
        figures=role_table_figures,
        absent="not applicable: role tables need matches between two seats",
        section="result",
        key="tables",
    ),
)
