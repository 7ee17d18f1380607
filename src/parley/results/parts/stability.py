"""Interval widths by number of blocks, for runs with sequential stopping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parley.plans.stop_targets import leading_metrics
from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.results.types import Bar, Bars, Figure, Lines, Series
from parley.store.types import RunInfo
from parley.tables import Table, format_number, plural

BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class HalfWidth:
    """Half the width of one model's interval in one role; None if its blocks contradict each
    other."""

    role: str
    alias: str
    half_width: float | None


@dataclass(frozen=True)
class Look:
    """The intervals after a number of blocks."""

    blocks: int
    matches: int
    half_widths: tuple[HalfWidth, ...]


@dataclass(frozen=True)
class MetricPath:
    """The looks at one metric, and the requested half-width."""

    metric: str
    half_width: float
    points: tuple[Look, ...]


@dataclass(frozen=True)
class StabilityResult:
    """The stopping rule of a sequential run, and its interval widths over time."""

    half_width: float | None
    alpha: float
    target: str
    top: int | None
    plan: str
    paths: tuple[MetricPath, ...]


def compute_stability(run: RunScores) -> StabilityResult | None:
    """The looks at every metric that decides when the run stops."""
    stop = run.config.stop
    if stop is None or run.anytime is None:
        return None
    leading = leading_metrics(list(run.metrics.values()), run.roles, stop)
    paths = []
    for metric in dict.fromkeys(leading.values()):
        points = tuple(
            Look(
                point.blocks,
                point.matches,
                tuple(
                    HalfWidth(role, alias, width)
                    for (role, alias), width in point.half_widths.items()
                    if role in leading and leading[role].name == metric.name
                ),
            )
            for point in run.anytime[metric.name].path
        )
        paths.append(MetricPath(metric.name, metric.epsilon, points))
    return StabilityResult(
        stop.half_width, stop.alpha, stop.target, stop.top, run.config.plan, tuple(paths)
    )


def stability_tables(found: StabilityResult, style: Style) -> list[Table]:
    """Half-widths by number of blocks."""
    tables = []
    for path in found.paths:
        last = path.points[-1].half_widths if path.points else ()
        cells = [(each.role, each.alias) for each in last]
        rows = []
        for point in path.points:
            widths = {(each.role, each.alias): each.half_width for each in point.half_widths}
            rows.append(
                [
                    str(point.blocks),
                    str(point.matches),
                    *(f"{format_number(widths.get(cell), 3)}" for cell in cells),
                ]
            )
        header = ["blocks", "matches", *(f"{alias}, {role}" for role, alias in cells)]
        note = (
            f"half-width of the confidence interval of {path.metric}; {describe_aim(found, path)}"
        )
        tables.append(Table(header, rows, left=0, note=note))
    return tables


def stability_rows(found: StabilityResult) -> Rows:
    """One row per look and interval."""
    return [
        {
            "metric": path.metric,
            "blocks": point.blocks,
            "matches": point.matches,
            "role": each.role,
            "alias": each.alias,
            "half_width": each.half_width,
        }
        for path in found.paths
        for point in path.points
        for each in point.half_widths
    ]


def stability_figures(found: StabilityResult, style: Style) -> Sequence[Figure]:
    """Half-widths over blocks, a line for each model and role."""
    figures = []
    for path in found.paths:
        cells = dict.fromkeys((e.role, e.alias) for p in path.points for e in p.half_widths)
        series = []
        for role, alias in cells:
            widths = [
                next(
                    (e.half_width for e in p.half_widths if (e.role, e.alias) == (role, alias)),
                    None,
                )
                for p in path.points
            ]
            blocks = tuple(float(point.blocks) for point in path.points)
            label = f"{alias}, {role}" if len({role for role, _ in cells}) > 1 else alias
            series.append(Series(label, blocks, tuple(widths), model=alias))
        title = f"Half-width of {path.metric}"
        alt = f"{title} by number of blocks; {describe_aim(found, path)}"
        figures.append(
            Lines(
                title,
                alt,
                "blocks",
                "half-width",
                tuple(series),
                target=path.half_width,
                target_label=describe_aim(found, path),
            )
        )
    return figures


def progress_figures(found: StabilityResult) -> list[Bars]:
    """How far the last half-widths are from their targets, for each metric that decides when the
    run stops."""
    figures = []
    for path in found.paths:
        if not path.points:
            continue
        last = path.points[-1]
        several = len({each.role for each in last.half_widths}) > 1
        bars = []
        for each in last.half_widths:
            width = each.half_width
            share = 0.0 if width is None else min(1.0, path.half_width / width) if width else 1.0
            number = "–" if width is None else f"±{format_number(width, 3)}"
            state = "reached" if width is not None and width <= path.half_width else "not yet"
            label = f"{each.alias}, {each.role}" if several else each.alias
            bars.append(Bar(label, {"on the way": share}, f"{number}, {state}", each.alias))
        title = f"Half-width of {path.metric} after {plural(last.blocks, 'block')}"
        title += f"; {describe_aim(found, path)}"
        alt = "; ".join(f"{bar.label}: {bar.note}" for bar in bars)
        figures.append(Bars(title, alt, "", tuple(bars), most=1.0))
    return figures


def describe_paths(found: StabilityResult | None) -> list[str]:
    """The half-width of the widest interval over time, drawn in one line for each metric."""
    lines = []
    for path in found.paths if found else ():
        known = [[each.half_width for each in point.half_widths] for point in path.points]
        widest = [
            max(width for width in widths if width is not None)
            for widths in known
            if widths and None not in widths
        ]
        if any(None in widths for widths in known):
            lines.append(
                f"{path.metric}: the scores of a model drifted during the run, so no common "
                "mean is consistent with all its blocks"
            )
        elif widest and found:
            drawing = "".join(
                BARS[round((len(BARS) - 1) * width / max(widest))] for width in thin_out(widest, 24)
            )
            blocks, aim = path.points[-1].blocks, describe_aim(found, path)
            now = f"{widest[-1]:.3g} after {plural(blocks, 'block')} ({aim})"
            lines.append(
                f"widest half-width of {path.metric}, from the first block to the "
                f"last: {drawing} {now}"
            )
    return lines


def describe_aim(found: StabilityResult, path: MetricPath) -> str:
    """The target of the run: a half-width, or the smallest difference to resolve."""
    width = f"{path.half_width:g}"
    return f"{'smallest difference to resolve' if found.plan == 'race' else 'target'}: {width}"


def thin_out(values: Sequence[float], most: int) -> Sequence[float]:
    """At most `most` values, evenly spread, including the first and the last."""
    if len(values) <= most:
        return values
    return [values[round(at * (len(values) - 1) / (most - 1))] for at in range(most)]


def stops_by_itself(info: RunInfo) -> bool:
    """Whether a run uses sequential stopping."""
    return info.config.stop is not None


PARTS = (
    Part(
        "stability",
        "Interval width by number of blocks",
        StabilityResult,
        compute_stability,
        tables=stability_tables,
        rows=stability_rows,
        figures=stability_figures,
        applies=stops_by_itself,
        absent=(
            "not applicable: this run had a fixed number of matches. Sequential stopping is "
            "used only with `--until-stable` or `--plan race`."
        ),
        section="fairness",
    ),
)
