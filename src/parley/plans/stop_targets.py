"""When a run may stop: what is asked for, and what the task's metrics make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from parley.errors import TaskError, UsageError, unknown
from parley.rules.task import Metric

TARGETS = ("new_items", "these_items")


@dataclass(frozen=True)
class Stop:
    """How precise the results shall be, and of what: of items like these, or of exactly these."""

    half_width: float | None = None  # in the units shown; None: what the task declares
    alpha: float = 0.05
    target: Literal["new_items", "these_items"] = "new_items"
    top: int | None = None  # a race for the leading ones only

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise unknown("target", str(self.target), TARGETS)
        if self.half_width is not None and not 0 < self.half_width < float("inf"):
            raise UsageError(f"half-width must be a number above 0, not {self.half_width}")
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha must lie between 0 and 1, not {self.alpha}")
        if self.top is not None and (type(self.top) is not int or self.top < 1):
            raise UsageError(f"top must be a whole number from 1 on, not {self.top}")

    def epsilon(self, metric: Metric, primary: Metric) -> float:
        """What was asked for, where the metric has the primary one's scale; else what the task
        declares."""
        same = (metric.low, metric.high, metric.unit) == (primary.low, primary.high, primary.unit)
        return metric.epsilon if self.half_width is None or not same else self.half_width


def leading_metrics(
    metrics: Sequence[Metric], roles: Sequence[str], stop: Stop
) -> dict[str, Metric]:
    """By contestant role, the first metric that it is given, with the half-width that is wanted:
    stopping goes by that one."""
    found: dict[str, Metric] = {}
    for role in roles:
        metric = next(
            (metric for metric in metrics if not metric.roles or role in metric.roles), None
        )
        if metric is None:
            continue  # a role that is not scored has nothing to wait for
        epsilon = stop.epsilon(metric, metrics[0])
        if not metric.low < metric.high or not epsilon > 0:
            raise TaskError(
                f"metric {metric.name!r} needs a range and an epsilon above 0 for a stopping rule"
            )
        found[role] = replace(metric, epsilon=epsilon)
    if not found:
        raise TaskError("no contestant is scored, so nothing can become stable")
    return found


def usual_spread(metric: Metric) -> float:
    """The standard deviation to expect of a block's score: as declared; else half the range of a
    rate, a quarter of others."""
    if metric.spread is not None:
        return metric.spread
    return (metric.high - metric.low) / (2 if (metric.low, metric.high) == (0, 1) else 4)


def supposed(metric: Metric) -> str:
    """What a forecast rests on."""
    spread = f"if a block's {metric.name} spreads by {usual_spread(metric):.3g}"
    return (
        spread
        if metric.spread is not None
        else f"{spread} (a guess from its range; with less it takes fewer)"
    )


def unit_of(metric: Metric) -> str:
    """The unit as it follows a number."""
    return f" {metric.unit}" if metric.unit else ""


def refuse_unscored(role: str, alias: str, metric: str, blocks: int) -> None:
    """Nothing becomes of a result that no block has given a score: better to stop than to pay
    on."""
    raise TaskError(
        f"{alias} as {role} has no {metric} in any of {blocks} blocks, "
        f"so nothing can be decided about it: "
        "is a judge missing, or was every match aborted?"
    )


def in_blocks(blocks: int, matches: int) -> str:
    """So many blocks, in words that say what they cost."""
    return f"about {blocks:,} blocks ({blocks * matches:,} matches)"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in a row, not too many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
