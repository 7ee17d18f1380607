"""The arguments and the result of a script: seats by role, and scores that match the declared
metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from parley.errors import TaskError, unknown_name
from parley.match.task_errors import locate_method
from parley.rules.pool import Seat
from parley.rules.task import Metric, Task, name_unprotected


def seats_by_role(task: Task, cast: Mapping[Seat, Any]) -> dict[str, Seat | list[Seat] | None]:
    """The arguments of a script: for each role a seat, None, or a list of seats."""
    seats: dict[str, Seat | list[Seat] | None] = {}
    for name, role in task.roles.items():
        found = sorted(seat for seat in cast if seat.role == name)
        if len(found) not in role.sizes or found != role.seats(name, len(found)):
            seated = ", ".join(map(str, found)) or "none"
            raise TaskError(
                f"{task.name}: role {name!r} needs {role.size_text} "
                f"seat{'' if role.size_text == '1' else 's'}, found {seated}"
            )
        seats[name] = found if role.largest > 1 else found[0] if found else None
    return seats


def seat_counts(cast: Mapping[Seat, Any], task: Task) -> dict[str, int]:
    return {name: sum(seat.role == name for seat in cast) for name in task.roles}


def check_metrics(task: Task, metrics: Sequence[Metric]) -> None:
    """Refuse metrics that cannot be analysed."""
    if not metrics:
        raise TaskError(
            f"{task.name}: metrics() must return at least one Metric (models are ranked by the "
            "first one)"
        )
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise TaskError(
                f"{task.name}: metrics() must return objects like Metric(name, low, high, "
                f"epsilon), not {metric!r:.80}"
            )
        where = f"{task.name}: metric {metric.name!r:.80}"
        if not isinstance(metric.name, str) or not metric.name.strip():
            raise TaskError(f"{where}: the name of a metric must be text that is not empty")
        for name in ("low", "high", "epsilon"):
            value = getattr(metric, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TaskError(f"{where}: {name} must be a number, not {value!r:.80}")
        if not (math.isfinite(metric.low) and math.isfinite(metric.high)):
            raise TaskError(f"{where}: low and high must be finite, because intervals need a range")
        # low == high is allowed: a parameter may leave only one possible value
        if metric.low > metric.high or not 0 < metric.epsilon < math.inf:
            raise TaskError(
                f"{where} needs low <= high and epsilon > 0, found low={metric.low:g}, "
                f"high={metric.high:g}, epsilon={metric.epsilon:g}"
            )
        if metric.better not in ("higher", "lower"):
            raise TaskError(
                f"{where}: better must be 'higher' or 'lower', not {metric.better!r:.80}"
            )
        if isinstance(metric.roles, str):
            raise TaskError(f"{where}: roles must be a tuple: write roles=({metric.roles!r},)")
        contestants = [name for name, role in task.roles.items() if not role.instrument]
        for role in metric.roles:
            if role not in contestants:
                raise TaskError(f"{where}: {unknown_name('contestant role', role, contestants)}")
    names = [metric.name for metric in metrics]
    if twice := [name for name in names if names.count(name) > 1]:
        raise TaskError(f"{task.name}: two metrics are named {twice[0]!r}: rename one of them")


def check_scores(
    task: Task, scores: Any, cast: Mapping[Seat, Any]
) -> dict[Seat, dict[str, float | None]]:
    """Check a script's scores against the task's metrics; return them by seat and metric."""
    metrics = {metric.name: metric for metric in task.metrics(seat_counts(cast, task))}
    primary = next(iter(metrics))
    twins = {name: name_unprotected(name) for name in metrics if name_unprotected(name) in metrics}
    if not isinstance(scores, Mapping):
        raise TaskError(
            f"{task.name}: play must return scores by seat, not {type(scores).__name__}"
            f"{locate_method(task, 'play')}"
        )
    contestants = [seat for seat in cast if not task.roles[seat.role].instrument]
    if strangers := [str(seat) for seat in scores if seat not in contestants]:
        raise TaskError(
            f"{task.name}: play returned a score for {', '.join(strangers)}, but only contestants "
            f"can be scored: {', '.join(map(str, contestants))}"
        )
    table: dict[Seat, dict[str, float | None]] = {}
    for seat in contestants:
        given = scores.get(seat)
        by_name = given if isinstance(given, Mapping) else {primary: given}
        if extra := by_name.keys() - metrics.keys():
            raise TaskError(
                f"{task.name}: play returned a score {min(map(str, extra))!r}, but metrics() "
                f"declares only {', '.join(metrics)}{locate_method(task, 'play')}"
            )
        # a seat has a protected score or an unprotected one, and not both
        absent = {
            name if twin in by_name and name not in by_name else twin
            for name, twin in twins.items()
        }
        table[seat] = {
            name: check_range(by_name.get(name), metric, seat, task)
            for name, metric in metrics.items()
            if (not metric.roles or seat.role in metric.roles)
            and (name in by_name or name not in absent)
        }
    return table


def check_range(value: Any, metric: Metric, seat: Seat, task: Task) -> float | None:
    """Check that a score is in its metric's range; None stays None."""
    if value is None:
        return None
    if isinstance(value, int | float) and metric.low <= value <= metric.high:
        return float(value)
    where = f"{task.name}, {seat}"
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
