"""Which plan is meant by what a configuration says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parley.errors import ParleyError, TaskError, UsageError
from parley.match.seating import counted
from parley.plans import Plan
from parley.plans.arrangements import contestant_roles
from parley.plans.blocks import Series
from parley.plans.confident_items import Confident
from parley.plans.fixed import scheduled
from parley.plans.stop_targets import Stop, leading_metrics
from parley.rules.task import Metric, Task

REPEATS = {"versus": 3}  # how often a plan plays everything at least, where nothing is said


def planned(
    name: str,
    task: Task,
    contestants: Sequence[str],
    instruments: Mapping[str, Sequence[str]],
    items: Sequence[str],
    repeats: int,
    seed: int,
    *,
    size: int | None = None,
    stop: Stop | None = None,
    max_blocks: int | None = None,
    verify: tuple[int, str, float] | None = None,
    adversary: str | None = None,
) -> Plan:
    """A fixed schedule; with a stop, one that looks at what was played."""
    for what, count in {
        "repeats": repeats,
        "max_blocks": 1 if max_blocks is None else max_blocks,
    }.items():
        if count < 1:
            raise UsageError(f"{what} must be at least 1, not {count}")
    if verify is not None:
        return Confident(
            Series(name, task, contestants, instruments, seed, size), items, repeats, *verify
        )
    if adversary is not None and name != "versus":
        raise UsageError(f"only the plan versus has an adversary: --plan versus, not {name}")
    if adversary in contestants:
        raise UsageError(
            f"{adversary} is the adversary, and a contestant too: "
            f"give one of the two an alias of its own"
        )
    if stop is None:
        return scheduled(
            name, task, contestants, instruments, items, repeats, seed, size, adversary
        )
    if stop.target == "these_items" and not items:
        raise UsageError(
            f"{task.name} is not played on items, so there are no `these_items`: "
            f"use --target new_items"
        )
    if stop.target == "these_items" and name == "race":
        raise UsageError(
            "a race is decided for new items: leave --target out, "
            "or use --until-stable with another plan"
        )
    if name == "race" and len(contestants) < 2:
        raise UsageError("a race needs at least two models: there is nothing to decide")
    if name == "race" and stop.top is not None and stop.top > len(contestants):
        raise UsageError(f"--top {stop.top}: there are only {len(contestants)} models")
    from parley.plans.race import Race
    from parley.plans.sequential import Rule, Sequential
    from parley.plans.stable import Stable
    from parley.statistics.stopping_rules import LEAST

    if max_blocks is not None and max_blocks < LEAST:
        raise UsageError(
            f"nothing is decided before {LEAST} blocks: --max-blocks {max_blocks} is too few"
        )
    series = Series(
        "cycles" if name == "race" else name, task, contestants, instruments, seed, size, adversary
    )
    table = counted(series.matches(0, "", None, 1, 0)[0].seats, task)
    leading = leading_metrics(metrics_of(task, table), list(contestant_roles(task)), stop)

    def rule() -> Rule:
        return (
            Race(leading, contestants, stop)
            if name == "race"
            else Stable(leading, contestants, stop, len(items))
        )

    return Sequential(series, rule, items, repeats, seed, max_blocks)


def metrics_of(task: Task, table: Mapping[str, int]) -> list[Metric]:
    """What a match with so many seats a role yields; a task that cannot say is at fault."""
    try:
        return list(task.metrics(table))
    except ParleyError:
        raise
    except Exception as wrong:
        raise TaskError(
            f"{task.name}: metrics() failed: {type(wrong).__name__}: {wrong}"
        ) from wrong
