"""Makes the plan that a configuration describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parley.errors import UsageError
from parley.match.seating import check_metrics, seat_counts
from parley.match.task_errors import errors_of_task
from parley.memory.feedback import CRITIC
from parley.plans import Plan
from parley.plans.arrangements import contestant_roles, default_arrangement
from parley.plans.blocks import BlockMaker
from parley.plans.confident_items import ScreeningPlan
from parley.plans.evolve import EvolvePlan
from parley.plans.evolve_settings import EvolveSettings, find_success_rules
from parley.plans.feedback_seats import FeedbackSeats, find_wanted_feedback
from parley.plans.fixed import make_fixed_plan
from parley.plans.stop_targets import StopTarget, leading_metrics
from parley.rules.task import Metric, Task

REPEATS = {"versus": 3}  # the default repeats of a plan, if more than 1


def choose_plan(
    name: str,
    task: Task,
    contestants: Sequence[str],
    instruments: Mapping[str, Sequence[str]],
    items: Sequence[str],
    repeats: int,
    seed: int,
    *,
    size: int | None = None,
    stop: StopTarget | None = None,
    max_blocks: int | None = None,
    screening: tuple[int, str, float] | None = None,
    adversary: str | None = None,
    evolve: EvolveSettings | None = None,
    at_once: int | None = None,
) -> Plan:
    """A fixed schedule; with `stop`, a sequential plan; with `screening`, it screens items."""
    for what, count in {
        "repeats": repeats,
        "max_blocks": 1 if max_blocks is None else max_blocks,
    }.items():
        if count < 1:
            raise UsageError(f"{what} must be at least 1, not {count}")
    if evolve is not None:
        # the plan has a critic only if its feedback needs one; a task may have its own critic
        own = CRITIC in task.roles and not find_wanted_feedback(evolve).critic
        rest = {role: each for role, each in instruments.items() if own or role != CRITIC}
        series = BlockMaker(default_arrangement(task), task, contestants, rest, seed, size)
        metrics = check_evolve(task, series, evolve)
        critics = () if own else instruments.get(CRITIC, ())
        feedback = FeedbackSeats(evolve, task, metrics, critics)
        return EvolvePlan(series, evolve, items, repeats, seed, task.items is not None, feedback)
    if screening is not None:
        return ScreeningPlan(
            BlockMaker(name, task, contestants, instruments, seed, size), items, repeats, *screening
        )
    if adversary is not None and name != "versus":
        raise UsageError(
            f"--adversary only works with --plan versus, not with --plan {name}: "
            "change the plan, or remove --adversary"
        )
    if adversary in contestants:
        raise UsageError(
            f"{adversary} is both the opponent (--adversary) and a contestant: give one of them "
            "another alias"
        )
    if stop is None:
        return make_fixed_plan(
            name, task, contestants, instruments, items, repeats, seed, size, adversary
        )
    if stop.target == "these_items" and not items:
        raise UsageError(
            f"the task {task.name} has no items, so --target these_items is not possible: use "
            "--target new_items"
        )
    if stop.target == "these_items" and name == "race":
        raise UsageError(
            "`--plan race` cannot be combined with --target these_items, because a race ranks "
            "models for new items: leave "
            "--target out, or use --until-stable with another plan"
        )
    if name == "race" and len(contestants) < 2:
        raise UsageError(
            f"`--plan race` needs at least two models, not {len(contestants)}: add models with -m"
        )
    if name == "race" and stop.top is not None and stop.top > len(contestants):
        raise UsageError(
            f"--top {stop.top} is too high, because there are only {len(contestants)} models"
        )
    from parley.plans.race import RaceRule
    from parley.plans.sequential import SequentialPlan, StoppingRule
    from parley.plans.stable import StableRule
    from parley.statistics.stopping_rules import LEAST

    if max_blocks is not None and max_blocks < LEAST:
        raise UsageError(
            f"--max-blocks {max_blocks} is too low: a run with a stopping rule needs at least "
            f"{LEAST} blocks"
        )
    series = BlockMaker(
        "cycles" if name == "race" else name, task, contestants, instruments, seed, size, adversary
    )
    table = seat_counts(series.matches(0, "", None, 1, 0)[0].seats, task)
    leading = leading_metrics(metrics_for_seats(task, table), list(contestant_roles(task)), stop)

    def rule() -> StoppingRule:
        return (
            RaceRule(leading, contestants, stop)
            if name == "race"
            else StableRule(leading, contestants, stop, len(items))
        )

    return SequentialPlan(series, rule, items, repeats, seed, max_blocks, at_once)


def check_evolve(task: Task, series: BlockMaker, evolve: EvolveSettings) -> list[Metric]:
    """The metrics of a match; raises UsageError for an arm in which nothing can be a success."""
    table = seat_counts(series.matches(0, "", None, 1, 0)[0].seats, task)
    metrics = metrics_for_seats(task, table)
    for arm in evolve.arms.values():
        find_success_rules(metrics, list(contestant_roles(task)), arm, task.name)
    return metrics


def metrics_for_seats(task: Task, table: Mapping[str, int]) -> list[Metric]:
    """The metrics of a match, given its seats per role; raises TaskError if the task fails."""
    with errors_of_task(task, "metrics"):
        found = list(task.metrics(table))
    check_metrics(task, found)
    return found
