"""Position effects: what a position in a match is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.statistics import role_tables
from parley.tables import Table, format_interval, format_signed


@dataclass(frozen=True)
class PositionEffect:
    """The effect of a position on the score: the difference from the mean over all positions."""

    role: str
    metric: str
    position: int
    effect: float | None
    low: float | None
    high: float | None
    blocks: int


def compute_positions(run: RunScores) -> tuple[PositionEffect, ...]:
    return tuple(
        PositionEffect(
            each.role,
            each.metric,
            each.position,
            each.mean,
            each.interval.low,
            each.interval.high,
            each.blocks,
        )
        for each in role_tables.position_effects(run.seated, run.bounds, same=run.same)
    )


def position_tables(found: Sequence[PositionEffect], style: Style) -> list[Table]:
    rows = [
        [
            each.role,
            str(each.position),
            each.metric,
            format_signed(each.effect),
            format_interval(each.low, each.high),
            str(each.blocks),
        ]
        for each in found
    ]
    header = ["role", "position", "metric", "effect", "95% interval", "blocks"]
    note = (
        "`effect` is the difference from the mean over all positions of the "
        f"role{style.fixed_blocks_note}"
    )
    return [Table(header, rows, left=3, note=note)]


PARTS = (
    Part(
        "positions",
        "Position effects",
        tuple[PositionEffect, ...],
        compute_positions,
        tables=position_tables,
        absent="not applicable: no role of this task has more than one position",
        section="fairness",
    ),
)
