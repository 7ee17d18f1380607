"""Judged before and judged again: what other judges make of the same matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from parley.results.parts.judges import facts
from parley.results.scores import Findings
from parley.statistics.agreement import krippendorff_alpha
from parley.statistics.correlation import blocked_correlation
from parley.statistics.estimates import Observation, block_means
from parley.statistics.intervals import interval
from parley.store import Score

Given = Mapping[tuple[int, str, str], float | None]  # by match, seat and metric


def again(findings: Findings) -> dict[str, Any] | None:
    """Scores before and now, by model and role, and how far the two agree over matches; None where
    nothing was judged again."""
    rejudged = findings.config.rejudged
    if rejudged is None:
        return None
    before = [score for score in findings.reader.scores(rejudged.run) if not score.idle]
    now = {
        (score.match, score.seat.key, score.metric): score.value
        for score in findings.reader.scores()
    }
    then = {(score.match, score.seat.key, score.metric): score.value for score in before}
    touched = [
        name
        for name, metric in findings.metrics.items()
        if metric.get("judged") or differs(name, then, now)
    ]
    return {
        "run": rejudged.run,
        "roles": rejudged.roles,
        "before": rejudged.before,
        "models": [row for metric in touched for row in moved(findings, metric, before)],
        "agreement": [
            row
            for metric in touched
            for role in findings.roles
            for row in agreed(metric, role, before, now)
        ],
    }


def differs(metric: str, then: Given, now: Given) -> bool:
    """Whether a metric that nobody judges came out otherwise: where an instrument decides how long
    a match goes on."""
    return any(then.get(key) != value for key, value in now.items() if key[2] == metric)


def moved(findings: Findings, metric: str, before: Sequence[Score]) -> list[dict[str, Any]]:
    """Every model's means, and the difference on the blocks that have both."""
    then = block_means(
        [Observation(s.block, s.match, s.alias, s.seat.role, s.metric, s.value) for s in before]
    )
    now, (low, high) = block_means(findings.observations), findings.bounds[metric]
    rows = []
    for key in [
        (metric, role, alias) for role in findings.roles for alias in findings.config.contestants
    ]:
        first, second = then.get(key, {}), now.get(key, {})
        steps = [second[block] - first[block] for block in second if block in first]
        found = interval(steps, (low - high, high - low))
        means = {
            "before": fmean(first.values()) if first else None,
            "now": fmean(second.values()) if second else None,
        }
        step = {
            "difference": fmean(steps) if steps else None,
            "low": found.low,
            "high": found.high,
            "blocks": len(steps),
        }
        if first or second:
            rows.append({"role": key[1], "metric": metric, "alias": key[2], **means, **step})
    return rows


def agreed(metric: str, role: str, before: Sequence[Score], now: Given) -> list[dict[str, Any]]:
    """How far scores before and now agree over matches."""
    here = [score for score in before if score.metric == metric and score.seat.role == role]
    first, second = (
        [score.value for score in here],
        [now.get((s.match, s.seat.key, metric)) for s in here],
    )
    if not any(
        one is not None and other is not None for one, other in zip(first, second, strict=True)
    ):
        return []
    blocks = [score.block for score in here]
    alpha = krippendorff_alpha(list(zip(first, second, strict=True)), "interval", blocks)
    found = {"alpha": facts(alpha), "r": facts(blocked_correlation(first, second, blocks))}
    return [{"role": role, "metric": metric, "kind": kind, **each} for kind, each in found.items()]
