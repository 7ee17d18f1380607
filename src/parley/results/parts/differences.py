"""Who beats whom: the difference of every two models, on the blocks that both played."""

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
    """All differences, with their intervals and adjusted p."""
    interval, p_value = (
        ("interval, adjusted", "p, adjusted")
        if style.sequential
        else ("interval, unadjusted", "p, Holm-adjusted")
    )
    header = ["role", "metric", "a", "b", "a − b", f"{style.level} {interval}", p_value, "blocks"]
    sure = (
        "intervals and p are adjusted for all pairs and hold at every look; no p: blocks "
        "contradict each other"
        if style.sequential
        else "an interval is for its pair by itself, p is adjusted for all pairs within role and "
        f"metric: an interval may leave out 0 where p is above {ALPHA:g}"
    )
    if style.exact:
        sure = "exact for these prompts: no interval and no p"
    rows = []
    for pair in (with_better_first(each, style) for each in found):
        digits = style.digits_of(pair.metric)
        p = format_p_value(pair.p)
        ends = format_interval(pair.low, pair.high, digits)
        step = format_signed(pair.difference, digits)
        rows.append([pair.role, pair.metric, pair.a, pair.b, step, ends, p, str(pair.blocks)])
    new = "; for new items like these" if style.these_items else ""
    return [
        Table(header, rows, left=4, note=f"{BETTER}; on the blocks that both played{new}; {sure}")
    ]


BETTER = "of two models, a is the one that scored better"


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
        "Who beats whom",
        Differences,
        compute_differences,
        tables=difference_tables,
        absent="there are no two models to compare",
        section="result",
    ),
)
