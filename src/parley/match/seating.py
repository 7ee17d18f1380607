"""What a script gets and returns: seats by role, and scores that fit what the task declares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from parley.errors import TaskError, unknown_name
from parley.match.task_errors import locate_method
from parley.rules.pool import Seat
from parley.rules.task import Metric, Task


def seats_by_role(task: Task, cast: Mapping[Seat, Any]) -> dict[str, Seat | list[Seat] | None]:
    """The arguments of a script: by role one seat, None, or a list."""
    seats: dict[str, Seat | list[Seat] | None] = {}
    for name, role in task.roles.items():
        found = sorted(seat for seat in cast if seat.role == name)
        if len(found) not in role.sizes or found != role.seats(name, len(found)):
            raise TaskError(f"{task.name}: role {name!r} takes {role.size_text} seats, got {found}")
        seats[name] = found if role.largest > 1 else found[0] if found else None
    return seats


def seat_counts(cast: Mapping[Seat, Any], task: Task) -> dict[str, int]:
    """How many seats each role has."""
    return {name: sum(seat.role == name for seat in cast) for name in task.roles}


def check_metrics(task: Task, metrics: Sequence[Metric]) -> None:
    """Refuse metrics that no statistics can use."""
    if not metrics:
        raise TaskError(f"{task.name}: metrics() returns no metric; the first one is the primary")
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise TaskError(
                f"{task.name}: metrics() wants Metric(name, low, high, epsilon), found "
                f"{metric!r:.80}"
            )
        where = f"{task.name}: metric {metric.name!r:.80}"
        if not isinstance(metric.name, str) or not metric.name.strip():
            raise TaskError(f"{where}: a metric has a name, which is a text")
        for name in ("low", "high", "epsilon"):
            value = getattr(metric, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TaskError(f"{where}: {name} must be a number, not {value!r:.80}")
        if not (math.isfinite(metric.low) and math.isfinite(metric.high)):
            raise TaskError(f"{where}: low and high must be finite: intervals need a range")
        # a parameter may leave one possible value only
        if metric.low > metric.high or not 0 < metric.epsilon < math.inf:
            raise TaskError(
                f"{where} needs low <= high and epsilon > 0, found low={metric.low:g}, "
                f"high={metric.high:g}, epsilon={metric.epsilon:g}"
            )
        if metric.better not in ("higher", "lower"):
            raise TaskError(f"{where}: better is 'higher' or 'lower', not {metric.better!r:.80}")
        if isinstance(metric.roles, str):
            raise TaskError(f"{where}: roles is a tuple: roles=({metric.roles!r},)")
        contestants = [name for name, role in task.roles.items() if not role.instrument]
        for role in metric.roles:
            if role not in contestants:
                raise TaskError(f"{where}: {unknown_name('contestant role', role, contestants)}")
    names = [metric.name for metric in metrics]
    if twice := [name for name in names if names.count(name) > 1]:
        raise TaskError(f"{task.name}: two metrics are called {twice[0]!r}: rename one of them")


def check_scores(
    task: Task, scores: Any, cast: Mapping[Seat, Any]
) -> dict[Seat, dict[str, float | None]]:
    """Check a script's scores against what the task declares; return them by seat and metric."""
    metrics = {metric.name: metric for metric in task.metrics(seat_counts(cast, task))}
    primary = next(iter(metrics))
    if not isinstance(scores, Mapping):
        raise TaskError(
            f"{task.name}: play must return scores by seat, not {type(scores).__name__}"
            f"{locate_method(task, 'play')}"
        )
    contestants = [seat for seat in cast if not task.roles[seat.role].instrument]
    if strangers := [str(seat) for seat in scores if seat not in contestants]:
        raise TaskError(
            f"{task.name}: {', '.join(strangers)} cannot be scored: no contestant sits there"
        )
    table: dict[Seat, dict[str, float | None]] = {}
    for seat in contestants:
        given = scores.get(seat)
        by_name = given if isinstance(given, Mapping) else {primary: given}
        if extra := by_name.keys() - metrics.keys():
            raise TaskError(
                f"{task.name}: score {min(map(str, extra))!r} is not among its metrics "
                f"{list(metrics)}{locate_method(task, 'play')}"
            )
        table[seat] = {
            name: check_range(by_name.get(name), metric, f"{task.name}, {seat}", task)
            for name, metric in metrics.items()
            if not metric.roles or seat.role in metric.roles
        }
    return table


def check_range(value: Any, metric: Metric, where: str, task: Task) -> float | None:
    """Check that a score lies in its metric's range; missing stays missing."""
    if value is None:
        return None
    slack = 1e-9 * max(1.0, abs(metric.low), abs(metric.high))
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise TaskError(
            f"{where}: {metric.name} must be a finite number, not {value!r}"
            f"{locate_method(task, 'play')}"
        )
    if not metric.low - slack <= value <= metric.high + slack:
        raise TaskError(
            f"{where}: {metric.name} {value!r} is outside its declared range {metric.low:g} "
            f"to {metric.high:g}{locate_method(task, 'metrics')}{locate_method(task, 'play')}"
        )
    return float(min(max(value, metric.low), metric.high))
