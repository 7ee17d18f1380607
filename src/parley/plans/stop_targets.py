"""The precision at which a run may stop, for the metrics of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from parley.errors import TaskError, UsageError, unknown_name
from parley.rules.task import Metric
from parley.tables import plural

TARGETS = ("new_items", "these_items")


@dataclass(frozen=True)
class StopTarget:
    """How precise the results must be, for new items like these or for exactly these items."""

    half_width: float | None = None  # in units of the score; None: as the task declares
    alpha: float = 0.05
    target: Literal["new_items", "these_items"] = "new_items"
    top: int | None = None  # a race for the leading ones only

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise unknown_name("target", str(self.target), TARGETS)
        if self.half_width is not None and not 0 < self.half_width < float("inf"):
            raise UsageError(f"--half-width must be a number above 0, not {self.half_width}")
        if not 0 < self.alpha < 1:
            raise UsageError(f"--alpha must be between 0 and 1, not {self.alpha}")
        if self.top is not None and (type(self.top) is not int or self.top < 1):
            raise UsageError(f"--top must be a whole number of at least 1, not {self.top}")

    def epsilon(self, metric: Metric, primary: Metric) -> float:
        """The half-width that the user set if the metric has the scale of the primary one;
        otherwise the epsilon that the task declares."""
        same = (metric.low, metric.high, metric.unit) == (primary.low, primary.high, primary.unit)
        return metric.epsilon if self.half_width is None or not same else self.half_width


def leading_metrics(
    metrics: Sequence[Metric], roles: Sequence[str], stop: StopTarget
) -> dict[str, Metric]:
    """For each contestant role its first metric, with the half-width to reach. Stopping rules use
    only these."""
    found: dict[str, Metric] = {}
    for role in roles:
        metric = next(
            (metric for metric in metrics if not metric.roles or role in metric.roles), None
        )
        if metric is None:
            continue  # the role has no score
        epsilon = stop.epsilon(metric, metrics[0])
        if not metric.low < metric.high or not epsilon > 0:
            raise TaskError(
                f"metric {metric.name!r} needs a range and an `epsilon` above 0 before "
                "--until-stable or --plan race can use it"
            )
        found[role] = replace(metric, epsilon=epsilon)
    if not found:
        raise TaskError(
            "no contestant role of this task has a metric, so --until-stable and --plan race "
            "cannot be used"
        )
    return found


def expected_spread(metric: Metric) -> float:
    """The standard deviation to expect of a block's score: as declared, or half the range of a
    rate, or a quarter of any other range."""
    if metric.spread is not None:
        return metric.spread
    return (metric.high - metric.low) / (2 if (metric.low, metric.high) == (0, 1) else 4)


def describe_assumption(metric: Metric) -> str:
    """The assumption behind a forecast, in words."""
    spread = f"if the standard deviation of {metric.name} is {expected_spread(metric):.3g}"
    return (
        spread
        if metric.spread is not None
        else f"{spread} (a guess from the range of scores; with a smaller standard deviation, "
        "fewer blocks are enough)"
    )


def unit_suffix(metric: Metric) -> str:
    """The unit as it follows a number, with a space before it."""
    return f" {metric.unit}" if metric.unit else ""


def refuse_unscored(role: str, alias: str, metric: str, blocks: int) -> None:
    """Raise TaskError for a model without any score, before more money is spent."""
    raise TaskError(
        f"{alias} as {role} has no score in `{metric}` in any of {blocks} blocks, so nothing "
        "can be decided about this model: check whether a judge is missing, or every match was "
        "aborted"
    )


def format_block_count(blocks: int, matches: int) -> str:
    """A number of blocks, with the matches that they take."""
    return f"about {plural(blocks, 'block')} ({plural(blocks * matches, 'match', 'matches')})"


def join_names(names: Sequence[str], most: int = 5) -> str:
    """Names separated by commas, at most `most` of them."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
