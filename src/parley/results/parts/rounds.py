"""Scores after each round (DynaEval, figure 4 a)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.results.types import Figure, Lines, Series
from parley.store.types import RunInfo
from parley.tables import Table, format_estimate, format_number, pivot


@dataclass(frozen=True)
class RoundScore:
    """A model's score in one role after one round."""

    role: str
    alias: str
    metric: str
    mean: float | None
    low: float | None
    high: float | None
    blocks: int
    matches: int
    missing: int
    round: int


def round_metrics(run: RunScores) -> dict[str, int]:
    """The metrics that are scored after a round, with the number of the round."""
    return {name: metric.round for name, metric in run.metrics.items() if metric.round}


def compute_rounds(run: RunScores) -> tuple[RoundScore, ...]:
    """Every model in every role, round by round (figure 4 a)."""
    rounds = round_metrics(run)
    rows = [
        RoundScore(
            row.role,
            row.alias,
            row.metric,
            row.mean,
            row.low,
            row.high,
            row.blocks,
            row.matches,
            row.missing,
            rounds[row.metric],
        )
        for row in run.results
        if row.metric in rounds
    ]
    return tuple(sorted(rows, key=lambda row: (row.role, row.alias, row.round)))


def round_tables(found: Sequence[RoundScore], style: Style) -> list[Table]:
    """By model and role, one column per round."""
    numbers = sorted({row.round for row in found})
    cells = (
        ((row.alias, row.role), row.round, format_estimate(row.mean, row.low, row.high))
        for row in found
    )
    note = (
        f"means with {style.level} intervals; if a match ended early, its last score counts "
        "for the later rounds"
    )
    header = ["model", "role", *(f"round {each}" for each in numbers)]
    return [Table(header, pivot(cells, numbers), left=2, note=note)]


def round_figures(found: Sequence[RoundScore], style: Style) -> Sequence[Figure]:
    """A line for each model and role."""
    series, several = [], len({row.role for row in found}) > 1
    for role, alias in dict.fromkeys((row.role, row.alias) for row in found):
        rows = [row for row in found if (row.role, row.alias) == (role, alias)]
        series.append(
            Series(
                f"{alias}, {role}" if several else alias,
                tuple(float(row.round) for row in rows),
                tuple(row.mean for row in rows),
                tuple(row.low for row in rows),
                tuple(row.high for row in rows),
                alias,
            )
        )
    metrics = list(dict.fromkeys(row.metric for row in found))
    title = f"{name_common_metric(metrics)} by round"
    alt = f"{title}, with {style.level} intervals: {describe_line_ends(series)}"
    bounds = style.bounds.get(metrics[0], ())
    return [Lines(title, alt, "round", "mean", tuple(series), y_bounds=bounds)]


def name_common_metric(metrics: Sequence[str]) -> str:
    """What metrics of several rounds measure: `pass` for pass_1 and pass_2."""
    names = {metric.rpartition("_")[0] or metric for metric in metrics}
    return names.pop() if len(names) == 1 else "score"


def describe_line_ends(series: Sequence[Series]) -> str:
    """The first and the last value of each line."""
    return "; ".join(
        f"{each.label} from {format_number(each.y[0])} to {format_number(each.y[-1])}"
        for each in series
    )


def has_rounds(info: RunInfo) -> bool:
    """Whether the task has a metric that is scored after a round."""
    return any(metric.get("round") for metric in info.identity["metrics"])


PARTS = (
    Part(
        "rounds",
        "Scores by round",
        tuple[RoundScore, ...],
        compute_rounds,
        tables=round_tables,
        figures=round_figures,
        applies=has_rounds,
        absent="not applicable: this task has no metric that is scored after each round",
    ),
)
