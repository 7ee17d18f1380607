"""The table that a run is known by: every model in every role and metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.results.types import Figure, Intervals, Point, ScoreRow, as_json
from parley.tables import Table, draw_interval, format_interval, format_number

COUNTS = ("blocks", "matches", "missing", "violations")
Scores = tuple[ScoreRow, ...]


def score_rows(found: Scores) -> Rows:
    """Every number unrounded, without the names that endpoints gave."""
    return [
        {name: value for name, value in as_json(row).items() if name != "model_served"}
        for row in found
    ]


def score_table(found: Scores, style: Style) -> Table:
    """Alias × role and metric: mean, interval, n."""
    header = ["model", "role", "metric", "mean", f"{style.level} interval", "sd", *COUNTS]
    lines = []
    for row in found:
        digits, mark = style.digits_of(row.metric), "*" if row.interval == "bounded" else ""
        bounds = f"{format_interval(row.low, row.high, digits)}{mark}"
        unit = f"{row.metric} ({row.unit})" if row.unit else row.metric
        counts = [str(getattr(row, name)) for name in COUNTS]
        mean, sd = format_number(row.mean, digits), format_number(row.sd, digits)
        lines.append([row.alias, row.role, unit, mean, bounds, sd, *counts])
    return Table(header, lines, left=3)


def with_drawings(table: Table, found: Scores) -> Table:
    """The same table with every interval drawn beside its numbers."""
    spans: dict[str, tuple[float, float]] = {}
    for metric in {row.metric for row in found}:
        known = [end for r in found if r.metric == metric for end in (r.low, r.mean, r.high)]
        ends = [value for value in known if value is not None]
        spans[metric] = (min(ends), max(ends)) if ends else (0, 0)
    drawings = [draw_interval(row.low, row.mean, row.high, spans[row.metric]) for row in found]
    rows = [[*line[:5], each, *line[5:]] for line, each in zip(table.rows, drawings, strict=True)]
    return replace(table, header=[*table.header[:5], "", *table.header[5:]], rows=rows)


def score_figures(found: Scores, style: Style) -> Sequence[Figure]:
    """The intervals of every metric, model by model."""
    figures = []
    for metric in dict.fromkeys(row.metric for row in found):
        rows = [row for row in found if row.metric == metric]
        points = tuple(Point(row.alias, row.mean, row.low, row.high, row.role) for row in rows)
        alt = "; ".join(
            f"{row.alias} as {row.role}: {format_number(row.mean, style.digits_of(metric))}"
            for row in rows
        )
        figures.append(Intervals(metric, f"{metric}: {alt}", rows[0].unit, points))
    return figures


def compute_results(run: RunScores) -> Scores:
    return run.results


PARTS = (
    Part(
        "results",
        "Results",
        Scores,
        compute_results,
        tables=lambda found, style: [score_table(found, style)],
        rows=score_rows,
        figures=score_figures,
        absent="nothing was played",
        section="result",
    ),
)
