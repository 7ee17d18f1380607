"""The rows of the main table: every model in every role and metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from parley.results.run_facts import group_attempts
from parley.results.signature import make_signature
from parley.results.types import ScoreRow
from parley.rules.task import Metric, name_unprotected
from parley.statistics import estimates
from parley.statistics.intervals import compute_interval

if TYPE_CHECKING:
    from parley.results.scores import RunScores

Cells = Counter[tuple[str, str]]  # by alias and role


def make_score_rows(run: RunScores) -> tuple[ScoreRow, ...]:
    """Every model in every role and metric: mean, interval, n, missing scores, signature."""
    served, order = run.reader.usage.names_served(), list(run.metrics)
    faults, defaulted = count_faults(run)
    found = estimates.compute_cells(run.tallies, run.bounds, run.method, run.same)
    without = count_missing_by_failure(run)
    cells = {(cell.alias, cell.role, cell.metric) for cell in found}
    protected = {name_unprotected(name): name for name in run.metrics}
    # a metric of which a model has nothing but unprotected results has an empty row
    expected = {
        (alias, role, protected[metric]): None
        for alias, role, metric in sorted(cells)
        if metric in protected
    }
    nothing = compute_interval([], (0, 0))
    found += [
        estimates.Cell(*key, None, nothing, None, 0, 0, 0)
        for key in {**dict.fromkeys(without), **expected}
        if key not in cells
    ]
    rows = []
    for cell in sorted(found, key=lambda cell: (order.index(cell.metric), cell.role, cell.alias)):
        low, high, kind = find_interval(run, cell)
        rows.append(
            ScoreRow(
                alias=cell.alias,
                model_requested=run.config.models[cell.alias]["model"],
                model_served=list(served.get(cell.alias, [])),
                role=cell.role,
                metric=cell.metric,
                unit=run.metrics[cell.metric].unit,
                mean=cell.mean,
                low=low,
                high=high,
                sd=cell.sd,
                interval=kind,
                blocks=cell.blocks,
                matches=cell.matches,
                missing=cell.missing + without[cell.alias, cell.role, cell.metric],
                violations=faults[cell.alias, cell.role],
                signature=make_signature(run.info, cell.matches),
                defaulted=defaulted[cell.alias, cell.role],
            )
        )
    return tuple(rows)


def find_interval(
    run: RunScores, cell: estimates.Cell
) -> tuple[float | None, float | None, str | None]:
    """The interval of a cell; with sequential stopping, the anytime-valid one."""
    if run.is_exact:
        return (None, None, "exact" if cell.mean is not None else None)
    if run.anytime is None:
        return cell.interval
    known = run.anytime.get(cell.metric)
    found = known.intervals.get((cell.metric, cell.role, cell.alias)) if known else None
    return (*found, "anytime") if found else (None, None, None)


def count_faults(run: RunScores) -> tuple[Cells, Cells]:
    """Violations, and the matches that count in which the task's default replaced a reply that
    could not be read."""
    faults, defaulted = Cells(), Cells()
    for number, rows in groupby(run.reader.violations.read(), lambda each: each.match):
        match = run.match_by_number.get(number)
        if run.main_stage is not None and match is None:
            continue
        violations = list(rows)
        faults.update((tries[0].alias, tries[0].seat.role) for tries in group_attempts(violations))
        replaced = {each.seat for each in violations if each.outcome == "default"}
        if match is not None:
            contestants = run.contestants_of(match)
            defaulted.update(
                {(alias, seat.role) for seat, alias in contestants if seat in replaced}
            )
    return faults, defaulted


def count_missing_by_failure(run: RunScores) -> Counter[tuple[str, str, str]]:
    """By alias, role and metric, the scores that are missing because a match failed; none with
    sequential stopping."""
    is_whole = run.config.stop is not None or not run.reader.matches.counts().get("failed")
    seats = [
        (alias, seat.role)
        for match in (() if is_whole else run.reader.matches.read())
        if match.state == "failed"
        and (run.main_stage is None or run.main_stage.includes(match.stage, match.arm))
        for seat, alias in match.seats.items()
        if seat not in match.unscored
    ]
    return Counter(
        (alias, role, metric.name)
        for alias, role in seats
        for metric in expected_metrics(run)
        if role in (metric.roles or run.roles)
    )


def expected_metrics(run: RunScores) -> Sequence[Metric]:
    """The metrics that a match which failed has not: those of protected results."""
    unprotected = set(map(name_unprotected, run.metrics))
    return [each for name, each in run.metrics.items() if name not in unprotected]
