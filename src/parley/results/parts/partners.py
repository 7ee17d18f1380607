"""Scores of every pairing after each round (DynaEval, figure 4 b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parley.results.part import Part, Style
from parley.results.parts.roles import compute_role_tables
from parley.results.parts.rounds import has_rounds, round_metrics
from parley.results.scores import RunScores
from parley.tables import Table, format_number, pivot


@dataclass(frozen=True)
class PartnerScore:
    """The score of the first role with one partner after one round."""

    first_role: str
    first: str
    second_role: str
    second: str
    metric: str
    round: int
    mean: float | None
    matches: int
    blocks: int


def compute_partners(run: RunScores) -> tuple[PartnerScore, ...]:
    """Every ordered pair, round by round: how a writer fares with each editor (figure 4 b)."""
    rounds = round_metrics(run)
    rows = [
        PartnerScore(
            table.first,
            each.first,
            table.second,
            each.second,
            table.metric,
            rounds[table.metric],
            each.cell.first,
            each.cell.matches,
            each.cell.blocks,
        )
        for table in (compute_role_tables(run) if rounds else ())
        if table.metric in rounds
        for each in table.cells
        if each.cell is not None
    ]
    return tuple(sorted(rows, key=lambda row: (row.first, row.second, row.round)))


def partner_tables(found: Sequence[PartnerScore], style: Style) -> list[Table]:
    """By pairing, one column per round."""
    numbers = sorted({row.round for row in found})
    cells = (
        ((row.first, row.second), row.round, f"{format_number(row.mean)} ({row.matches})")
        for row in found
    )
    roles = [found[0].first_role, found[0].second_role]
    header = [*roles, *(f"round {each}" for each in numbers)]
    return [Table(header, pivot(cells, numbers), left=2, note="means (matches)")]


PARTS = (
    Part(
        "partners",
        "Scores by round and partner",
        tuple[PartnerScore, ...],
        compute_partners,
        tables=partner_tables,
        applies=has_rounds,
        absent="not applicable: this task has no metric that is scored after each round of a match "
        "between two seats",
    ),
)
