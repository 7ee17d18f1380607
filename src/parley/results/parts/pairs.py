"""Paired differences between models, on the blocks that both played."""

from __future__ import annotations

from dataclasses import replace

from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.statistics.estimates import PairedDifference
from parley.statistics.intervals import ALPHA
from parley.tables import Table, format_interval, format_p_value, format_signed

Differences = tuple[PairedDifference, ...]


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


PARTS = (
    Part(
        "pairs",
        "Paired differences",
        Differences,
        compute_differences,
        tables=difference_tables,
        absent="not applicable: the run has fewer than two models to compare",
        section="result",
    ),
)
