"""Scores beside what they cost: USD per match, and the latency of calls."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.results.types import Dot, Figure, Scatter, ScoreRow
from parley.store.types import MedianLatency
from parley.tables import Table, format_interval, format_number

Owner = tuple[str, str]  # alias and role


@dataclass(frozen=True)
class EfficiencyRow:
    """A model's score in a role, by the metric that the role is ranked by, with its cost per match
    in USD and the median latency of its calls in seconds; None if unknown.

    The cost is that of all its calls in this role. `matches` are all matches with such calls, also
    those that the score leaves out because they, or their block, did not end."""

    alias: str
    role: str
    metric: str
    mean: float | None
    low: float | None
    high: float | None
    usd_per_match: float | None
    latency: float | None
    calls: int  # calls with a known latency
    matches: int


def compute_efficiency(run: RunScores) -> tuple[EfficiencyRow, ...]:
    """All models, if the cost or the latency of at least one of them is known and not 0."""
    leading = {role: run.ranking_metric(role) for role in run.roles}
    rows = [row for row in run.results if row.metric == leading[row.role]]
    usd: dict[Owner, float | None] = {(row["alias"], row["role"]): row["usd"] for row in run.cost}
    latencies = run.reader.usage.median_latencies()
    if not is_any_known([(row.alias, row.role) for row in rows], usd, latencies):
        return ()
    return tuple(join_costs(rows, usd, run.reader.usage.called_matches(), latencies))


def is_any_known(
    owners: Iterable[Owner], usd: Mapping[Owner, float | None], latencies: Container[Owner]
) -> bool:
    """Whether a cost is known and not 0, or a latency is known. Runs of bots have neither."""
    return any(usd.get(owner) or owner in latencies for owner in owners)


def join_costs(
    rows: Sequence[ScoreRow],
    usd: Mapping[Owner, float | None],
    called: Mapping[Owner, int],
    latencies: Mapping[Owner, MedianLatency],
) -> Iterator[EfficiencyRow]:
    """Scores with their costs; an unknown cost stays unknown. Nothing if all costs are 0 or unknown
    and there is no latency, as in runs of bots."""
    owners = [(row.alias, row.role) for row in rows]
    if not is_any_known(owners, usd, latencies):
        return
    for row, owner in zip(rows, owners, strict=True):
        paid, matches, waited = usd.get(owner), called.get(owner, 0), latencies.get(owner)
        yield EfficiencyRow(
            row.alias,
            row.role,
            row.metric,
            row.mean,
            row.low,
            row.high,
            None if paid is None or not matches else paid / matches,
            waited.seconds if waited else None,
            waited.calls if waited else 0,
            matches,
        )


def efficiency_tables(found: Sequence[EfficiencyRow], style: Style) -> list[Table]:
    rows = [
        [
            row.alias,
            row.role,
            row.metric,
            format_number(row.mean, style.digits_of(row.metric)),
            format_interval(row.low, row.high, style.digits_of(row.metric)),
            "–" if row.usd_per_match is None else f"{row.usd_per_match:.4g}",
            str(row.matches),
            format_number(row.latency),
            str(row.calls),
        ]
        for row in found
    ]
    header = ["model", "role", "metric", "mean", f"{style.level} interval"]
    header += ["usd per match", "matches", "median latency (s)", "calls"]
    note = (
        "usd per match: the cost of all calls of the model in this role, divided by `matches`, the "
        "matches with such calls (unfinished ones included); latency: seconds from a request to "
        "its reply; –: unknown"
    )
    return [Table(header, rows, left=3, note=note)]


def efficiency_figures(found: Sequence[EfficiencyRow], style: Style) -> list[Figure]:
    """Score against cost, and score against latency, for each role."""
    figures = []
    for role in dict.fromkeys(row.role for row in found):
        rows = [row for row in found if row.role == role and row.mean is not None]
        for name, axis in (
            ("usd_per_match", "USD per match"),
            ("latency", "median latency of a call, seconds"),
        ):
            known = [row for row in rows if getattr(row, name) is not None]
            # one dot compares nothing
            if len(known) > 1 and any(getattr(row, name) for row in known):
                figures.append(draw_against(known, rows, name, axis, style))
    return figures


def draw_against(
    known: Sequence[EfficiencyRow],
    rows: Sequence[EfficiencyRow],
    name: str,
    axis: str,
    style: Style,
) -> Figure:
    """The models whose cost or latency is known; the title names the others."""
    metric, role = known[0].metric, known[0].role
    dots = tuple(
        Dot(
            row.alias,
            getattr(row, name),
            row.mean,
            note=f"{row.alias}: {metric} {row.mean:.3g}, {axis} {getattr(row, name):.3g}",
            y_low=row.low,
            y_high=row.high,
            model=row.alias,
        )
        for row in known
        if row.mean is not None
    )
    title = f"{metric} of the {role} against {axis}"
    if missing := [row.alias for row in rows if row not in known]:
        title += f" (not known for {', '.join(missing)})"
    alt = f"{title}: {'; '.join(dot.note for dot in dots)}"
    furthest = max(dot.x for dot in dots)
    return Scatter(
        title,
        alt,
        axis,
        metric,
        dots,
        x_bounds=(0.0, 2 * furthest),
        y_bounds=style.bounds.get(metric, ()),
    )


PARTS = (
    Part(
        "efficiency",
        "Score beside cost and latency",
        tuple[EfficiencyRow, ...],
        compute_efficiency,
        tables=efficiency_tables,
        figures=efficiency_figures,
        absent="no model of this run has a score beside a known latency or a known cost above 0",
        section="cost",
        needs_figure=True,
    ),
)
