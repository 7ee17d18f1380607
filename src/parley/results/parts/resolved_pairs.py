"""Pairs of models that the run told apart or showed to be equal, and what one of them cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

from parley.money import format_usd, is_free, total_cost
from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.results.types import as_json
from parley.statistics.intervals import ALPHA
from parley.tables import Table, plural


@dataclass(frozen=True)
class RolePairs:
    """The pairs of one role, by the metric that ranks it. A pair is different if one model is
    significantly better, and equal if the difference is known to be smaller than the half-width
    that the run was asked for."""

    role: str
    metric: str
    pairs: int
    different: int
    equal: int


@dataclass(frozen=True)
class ResolvedPairs:
    """The resolved pairs of a run, and the cost of all its calls for each of them.

    Bots and people cost nothing and do not count. `usd` is None unless the whole cost is known.
    `usd_per_pair` and `calls_per_pair` are None if no pair is resolved or nothing was spent.
    """

    roles: tuple[RolePairs, ...]
    pairs: int
    resolved: int
    calls: int
    usd: float | None
    usd_per_pair: float | None
    calls_per_pair: float | None


def compute_resolved_pairs(run: RunScores) -> ResolvedPairs | None:
    """None if no role has two models to compare."""
    roles = tuple(count_by_role(run))
    if not roles:
        return None
    spent = total_cost(row for row in run.cost if not is_free(run.config.models[row["alias"]]))
    resolved = sum(role.different + role.equal for role in roles)
    return ResolvedPairs(
        roles,
        sum(role.pairs for role in roles),
        resolved,
        spent.calls,
        spent.usd,
        spent.usd / resolved if spent.usd and resolved else None,
        spent.calls / resolved if spent.calls and resolved else None,
    )


def count_by_role(run: RunScores) -> Iterator[RolePairs]:
    """The resolved pairs of every role with at least two models. Models without a score are part
    of unresolved pairs."""
    alpha = run.config.stop.alpha if run.config.stop else ALPHA
    for role in run.roles:
        metric = run.ranking_metric(role)
        models = {row.alias for row in run.results if (row.role, row.metric) == (role, metric)}
        if metric is None or len(models) < 2:
            continue
        own = [pair for pair in run.differences if (pair.role, pair.metric) == (role, metric)]
        if run.is_exact:
            near = 1e-9 * max(1.0, *map(abs, run.bounds[metric]))
            equal = sum(abs(pair.difference) <= near for pair in own)
            different = len(own) - equal
        else:
            apart = {(pair.a, pair.b) for pair in own if pair.p is not None and pair.p <= alpha}
            known = (run.anytime or {}).get(metric)
            level = known.equal.get(role, frozenset()) if known else frozenset()
            different, equal = len(apart), len(level - apart)
        yield RolePairs(role, metric, comb(len(models), 2), different, equal)


def describe_resolved(found: ResolvedPairs | None) -> list[str]:
    """A line for notes below rankings; none if nothing in the run is billed."""
    if found is None or found.usd == 0:
        return []
    pairs = f"resolved pairs: {found.resolved:,} of {found.pairs:,}"
    spent = "cost not known" if found.usd is None else f"{format_usd(found.usd)} USD"
    if not found.resolved:
        calls = plural(found.calls, "call")
        return [f"{pairs}, so there is no cost per resolved pair ({spent} for {calls})"]
    if found.usd_per_pair is not None:
        return [f"{pairs}; USD per resolved pair: {format_usd(found.usd_per_pair)}"]
    calls = "" if found.calls_per_pair is None else f"; {found.calls_per_pair:,.1f} calls per pair"
    return [f"{pairs}; USD per resolved pair: not known{calls}"]


def resolved_tables(found: ResolvedPairs, style: Style) -> list[Table]:
    rows = [
        [each.role, each.metric, str(each.pairs), str(each.different), str(each.equal)]
        for each in found.roles
    ]
    if len(rows) > 1:
        different = sum(each.different for each in found.roles)
        sums = (found.pairs, different, found.resolved - different)
        rows.append(["all", "", *map(str, sums)])
    equal = (
        "`equal`: known to differ by less than the half-width that the run was asked for"
        if style.sequential
        else "`equal` needs a run with a half-width (`--until-stable` or `--plan race`)"
    )
    if style.exact:
        equal = "`equal`: the same score; scores are exact for these prompts"
    notes = [f"`different`: one model is significantly better ({style.level}); {equal}"]
    notes += describe_resolved(found) or ["nothing in this run is billed"]
    header = ["role", "metric", "pairs", "different", "equal"]
    return [Table(header, rows, left=2, note="\n".join(notes))]


def resolved_rows(found: ResolvedPairs) -> Rows:
    """One row per role, with the cost of the whole run."""
    whole = {
        name: value
        for name, value in as_json(found).items()
        if name not in ("roles", "pairs", "resolved")
    }
    return [{**as_json(each), **whole} for each in found.roles]


PARTS = (
    Part(
        "resolved_pairs",
        "Cost of resolved pairs",
        ResolvedPairs,
        compute_resolved_pairs,
        tables=resolved_tables,
        rows=resolved_rows,
        absent="not applicable: the run has fewer than two models to compare",
        section="cost",
    ),
)
