"""What a script gets and returns: seats by role, and scores that fit what the task declares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from parley.errors import TaskError
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


def check_scores(
    task: Task, scores: Any, cast: Mapping[Seat, Any]
) -> dict[Seat, dict[str, float | None]]:
    """Check a script's scores against what the task declares; return them by seat and metric."""
    metrics = {metric.name: metric for metric in task.metrics(seat_counts(cast, task))}
    primary = next(iter(metrics))
    if not isinstance(scores, Mapping):
        raise TaskError(
            f"{task.name}: play must return scores by seat, not {type(scores).__name__}"
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
                f"{task.name}: score {sorted(extra)[0]!r} is not among its metrics {list(metrics)}"
            )
        table[seat] = {
            name: check_range(by_name.get(name), metric, f"{task.name}, {seat}")
            for name, metric in metrics.items()
            if not metric.roles or seat.role in metric.roles
        }
    return table


def check_range(value: Any, metric: Metric, where: str) -> float | None:
    """Check that a score lies in its metric's range; missing stays missing."""
    if value is None:
        return None
    slack = 1e-9 * max(1.0, abs(metric.low), abs(metric.high))
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise TaskError(f"{where}: {metric.name} must be a finite number, not {value!r}")
    if not metric.low - slack <= value <= metric.high + slack:
        raise TaskError(
            f"{where}: {metric.name} {value!r} is outside its declared range {metric.low:g} "
            f"to {metric.high:g}"
        )
    return float(min(max(value, metric.low), metric.high))
