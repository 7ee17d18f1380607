"""Pass@K: the chance that at least one of K samples succeeds, estimated without bias."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.results.types import Figure, Lines, Series
from parley.statistics.intervals import compute_interval
from parley.store.types import MatchRow, RunInfo
from parley.tables import Table, format_estimate, format_number, pivot, plural

KS = (1, 2, 3, 5, 10, 20, 50, 100)
Partners = tuple[tuple[str, str], ...]  # roles of the others, and who had them


@dataclass(frozen=True)
class PassRate:
    """Pass@K of a model in the leading role."""

    role: str
    alias: str
    metric: str
    k: int
    mean: float | None
    low: float | None
    high: float | None
    items: int
    samples: int


def estimate_pass_at_k(k: int, samples: int, right: int) -> float:
    """1 − C(n − c, k) / C(n, k), for c successes in n samples (Chen et al. 2021, eq. 1)."""
    if not 0 <= right <= samples or not 1 <= k <= samples:
        raise ValueError(
            f"Pass@{k} needs at least {k} samples and at most as many successes as samples, found "
            f"{plural(samples, 'sample')} with {plural(right, 'success', 'successes')}"
        )
    return 1 - comb(samples - right, k) / comb(samples, k)


def compute_pass_rates(run: RunScores) -> tuple[PassRate, ...]:
    """Pass@K of metrics with a success threshold. The samples are the matches of a model in the
    first role on one item with the same partners.

    If it had several partners, the value of an item is the mean over them.
    """
    found: list[PassRate] = []
    if not run.reader.run.items():
        return ()  # matches without items are not samples of the same problem
    for name, metric in run.metrics.items():
        if metric.success is None:
            continue
        samples: dict[tuple[str, str], dict[str, dict[Partners, list[bool]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )
        for row in run.observations:
            if row.metric == name and row.role == run.roles[0] and row.value is not None:
                good = (
                    row.value >= metric.success
                    if metric.better == "higher"
                    else row.value <= metric.success
                )
                partners = partners_of(run, run.match_by_number[row.match], row.alias)
                samples[row.role, row.alias][row.block][partners].append(good)
        for (role, alias), items in sorted(samples.items()):
            least = min(len(drawn) for groups in items.values() for drawn in groups.values())
            for k in [k for k in KS if k <= least]:
                values = [mean_over_partners(k, groups.values()) for groups in items.values()]
                low, high, _ = compute_interval(values, (0.0, 1.0), method=run.method)
                mean = fmean(values)
                found.append(PassRate(role, alias, name, k, mean, low, high, len(items), least))
    return tuple(found)


def partners_of(run: RunScores, match: MatchRow, alias: str) -> Partners:
    """Who else played in a match, and as what: the reviewer of a programmer."""
    others = [
        (seat.role, other)
        for seat, other in match.seats.items()
        if seat.role in run.roles and other != alias
    ]
    return tuple(sorted(others))


def mean_over_partners(k: int, groups: Iterable[Sequence[bool]]) -> float:
    """Pass@K on one item: the mean over partners, each with the samples that were made with it."""
    return fmean(estimate_pass_at_k(k, len(drawn), sum(drawn)) for drawn in groups)


def pass_tables(found: Sequence[PassRate], style: Style) -> list[Table]:
    """By model, a column for each K."""
    ks = sorted({row.k for row in found})
    cells = (
        ((row.alias, row.role, row.metric), row.k, format_estimate(row.mean, row.low, row.high))
        for row in found
    )
    note = (
        "an unbiased estimate of Pass@K: the mean over items, with its 95% interval; the "
        "samples of an item are its matches with the same partners, and all partners have "
        f"equal weight{style.fixed_blocks_note}"
    )
    header = ["model", "role", "metric", *(f"K = {k}" for k in ks)]
    return [Table(header, pivot(cells, ks), left=3, note=note)]


def pass_figures(found: Sequence[PassRate], style: Style) -> Sequence[Figure]:
    """Pass@K of the metric that the role is ranked by, a line for each model; none if K is only 1,
    since that is the score itself."""
    leading = {style.leading.get(row.role, row.metric) for row in found}
    rows = [row for row in found if row.metric in leading] or found
    metric = rows[0].metric
    rows = [row for row in rows if row.metric == metric]
    if {row.k for row in rows} == {1}:
        return []
    models = list(dict.fromkeys(row.alias for row in rows))
    title = f"Pass@K by {metric}"
    last = {row.alias: row for row in rows}  # the largest K comes last
    said = "; ".join(
        f"{alias}: {format_number(row.mean)} at K = {row.k}" for alias, row in last.items()
    )
    alt = f"{title}, with 95% intervals over items: {said}"
    series = tuple(make_pass_series([row for row in rows if row.alias == each]) for each in models)
    return [Lines(title, alt, "K", "Pass@K", series, y_bounds=(0.0, 1.0))]


def make_pass_series(rows: Sequence[PassRate]) -> Series:
    """The Pass@K of one model."""
    return Series(
        rows[0].alias,
        tuple(float(row.k) for row in rows),
        tuple(row.mean for row in rows),
        tuple(row.low for row in rows),
        tuple(row.high for row in rows),
        rows[0].alias,
    )


def has_success(info: RunInfo) -> bool:
    """Whether a metric has a success threshold."""
    return any(metric.get("success") is not None for metric in info.identity["metrics"])


PARTS = (
    Part(
        "passes",
        "Pass@K",
        tuple[PassRate, ...],
        compute_pass_rates,
        tables=pass_tables,
        figures=pass_figures,
        applies=has_success,
        absent=(
            "not applicable: Pass@K needs items, a metric with a success threshold, and at "
            "least one finished match"
        ),
    ),
)
