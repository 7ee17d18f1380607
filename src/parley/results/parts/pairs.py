"""Paired differences between models, on the blocks that both played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from parley.results.part import Part, Style
from parley.results.parts.results import name_role, order_scores
from parley.results.scores import RunScores
from parley.results.types import Figure, HeatMap
from parley.statistics.estimates import PairedDifference
from parley.statistics.intervals import ALPHA
from parley.tables import Table, format_interval, format_p_value, format_signed

Differences = tuple[PairedDifference, ...]
Mark = Literal["", "better", "worse", "even"]

MOST_COMPARED = 12  # models in the figure of who beats whom


def compute_differences(run: RunScores) -> Differences:
    return run.differences


def difference_tables(found: Differences, style: Style) -> list[Table]:
    """All differences with their intervals and corrected p-values."""
    interval, p_value = (
        ("interval, corrected", "p, corrected")
        if style.sequential
        else ("interval, uncorrected", "p, Holm-corrected")
    )
    header = ["role", "metric", "better", "other", "difference"]
    header += [f"{style.level} {interval}", p_value, "blocks"]
    sure = (
        "intervals and p-values are anytime-valid and corrected for all pairs; a p-value is "
        "missing if the scores of a model drifted, so that its blocks contradict each other"
        if style.sequential
        else "each interval is for its pair alone, but p is Holm-corrected over all pairs of a "
        f"role and metric, so an interval can exclude 0 even if p is above {ALPHA:g}"
    )
    if style.exact:
        sure = "differences are exact for these prompts, so they have no interval and no p"
    rows = []
    for pair in (with_better_first(each, style) for each in found):
        digits = style.digits_of(pair.metric)
        p = format_p_value(pair.p)
        ends = format_interval(pair.low, pair.high, digits)
        step = format_signed(pair.difference, digits)
        rows.append([pair.role, pair.metric, pair.a, pair.b, step, ends, p, str(pair.blocks)])
    new = "; intervals hold for new items of the same kind" if style.these_items else ""
    return [Table(header, rows, left=4, note=f"{BETTER}{new}; {sure}")]


BETTER = (
    "`difference` is the score of the better model minus that of the other model, on the "
    "blocks that both played (a block is all matches on one item, or of one repeat)"
)


def with_better_first(pair: PairedDifference, style: Style) -> PairedDifference:
    """The same difference, with the model that scored better as `a`."""
    better = -1 if pair.metric in style.lower_is_better else 1
    if pair.difference * better >= 0:
        return pair
    return replace(
        pair,
        a=pair.b,
        b=pair.a,
        difference=-pair.difference,
        low=None if pair.high is None else -pair.high,
        high=None if pair.low is None else -pair.low,
    )


def difference_figures(found: Differences, style: Style) -> Sequence[Figure]:
    """Who beats whom, for each role in the metric that it is ranked by; more models than fit stand
    in the table only."""
    groups: dict[tuple[str, str], dict[tuple[str, str], PairedDifference]] = {}
    for pair in found:
        if style.leading.get(pair.role, pair.metric) == pair.metric:
            turned = replace(pair, a=pair.b, b=pair.a, difference=-pair.difference)
            own = groups.setdefault((pair.role, pair.metric), {})
            own |= {(each.a, each.b): each for each in (pair, turned)}
    figures = []
    for (role, metric), pairs in groups.items():
        rows = [
            row
            for row in style.scores
            if (row.role, row.metric) == (role, metric) and row.mean is not None
        ]
        if 1 < len(rows) <= MOST_COMPARED:
            names = tuple(row.alias for row in order_scores(rows, style))
            figures.append(draw_pairs(role, metric, names, pairs, style))
    return figures


def draw_pairs(
    role: str,
    metric: str,
    names: tuple[str, ...],
    pairs: Mapping[tuple[str, str], PairedDifference],
    style: Style,
) -> HeatMap:
    """Row minus column, for every two models."""
    title = f"Who beats whom: {name_role(role)}"
    caption = f"{name_role(role)}, {metric}: row minus column"
    wins = [
        f"{a} beats {b}"
        for a in names
        for b in names
        if mark_difference(pairs.get((a, b)), style) == "better"
    ]
    said = "; ".join(wins) if wins else "no difference is significant"
    found = [[pairs.get((row, column)) for column in names] for row in names]
    return HeatMap(
        title,
        f"{caption}. {said}",
        "",
        names,
        names,
        tuple(tuple(pair.difference if pair else None for pair in row) for row in found),
        digits=style.digits_of(metric),
        marks=tuple(tuple(mark_difference(pair, style) for pair in row) for row in found),
        caption=caption,
        role=role,
    )


def mark_difference(pair: PairedDifference | None, style: Style) -> Mark:
    """Whether the first model of a pair is significantly better or worse."""
    if pair is None:
        return ""
    sure = pair.difference != 0 if style.exact else pair.p is not None and pair.p <= ALPHA
    better = (pair.difference > 0) != (pair.metric in style.lower_is_better)
    return ("better" if better else "worse") if sure else "even"


PARTS = (
    Part(
        "pairs",
        "Paired differences",
        Differences,
        compute_differences,
        tables=difference_tables,
        figures=difference_figures,
        absent="not applicable: the run has fewer than two models to compare",
        section="result",
    ),
)
