"""Comparison of the scores before and after `parley rejudge`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from parley.results.part import Part, Rows, Style
from parley.results.parts.judges import estimate_fields
from parley.results.scores import RunScores
from parley.results.types import as_json
from parley.statistics.agreement import krippendorff_alpha
from parley.statistics.correlation import blocked_correlation
from parley.statistics.estimates import block_means
from parley.statistics.intervals import compute_interval
from parley.statistics.score_table import Observation, ScoreTable
from parley.store.types import RunInfo, Score
from parley.tables import Table, format_interval, format_number, format_signed

Given = Mapping[tuple[int, str, str], float | None]  # by match, seat and metric


@dataclass(frozen=True)
class ScoreChange:
    """A model's mean before and now, and the paired difference on the blocks that have both."""

    role: str
    metric: str
    alias: str
    before: float | None
    now: float | None
    difference: float | None
    low: float | None
    high: float | None
    blocks: int


@dataclass(frozen=True)
class JudgementAgreement:
    """Agreement between the scores before and now, over matches."""

    role: str
    metric: str
    kind: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    blocks: int | None


@dataclass(frozen=True)
class Rejudgement:
    """The original run, its judges, and the comparison with the new judgements."""

    run: str
    roles: tuple[str, ...]
    before: dict[str, list[str]]
    models: tuple[ScoreChange, ...]
    agreement: tuple[JudgementAgreement, ...]


def compare_judgements(run: RunScores) -> Rejudgement | None:
    """Scores before and now by model and role, and their agreement over matches."""
    rejudged = run.config.rejudged
    if rejudged is None:
        return None
    played = {match.number for match in run.matches}
    before = [
        score
        for score in run.reader.scores.read(rejudged.run)
        if not score.unscored and score.match in played
    ]
    now = {
        (score.match, score.seat.key, score.metric): score.value
        for score in run.reader.scores.read()
        if score.match in played
    }
    then = {(score.match, score.seat.key, score.metric): score.value for score in before}
    touched = [
        name
        for name, metric in run.metrics.items()
        if metric.judged or has_changed(name, then, now)
    ]
    return Rejudgement(
        run=rejudged.run,
        roles=tuple(rejudged.roles),
        before=rejudged.before,
        models=tuple(row for metric in touched for row in score_changes(run, metric, before)),
        agreement=tuple(
            row
            for metric in touched
            for role in run.roles
            for row in judgement_agreement(metric, role, before, now)
        ),
    )


def has_changed(metric: str, then: Given, now: Given) -> bool:
    """Whether a metric without judges changed: an instrument can decide how long a match lasts."""
    return any(then.get(key) != value for key, value in now.items() if key[2] == metric)


def score_changes(run: RunScores, metric: str, before: Sequence[Score]) -> Iterator[ScoreChange]:
    """Every model's means, and the difference on the blocks that have both."""
    then = block_means(
        ScoreTable.of(
            Observation(s.block, s.match, s.alias, s.seat.role, s.metric, s.value) for s in before
        )
    )
    now, (lowest, highest) = run.block_means, run.bounds[metric]
    for role in run.roles:
        for alias in run.config.contestants:
            first, second = (means.get((metric, role, alias), {}) for means in (then, now))
            if not first and not second:
                continue
            steps = [second[block] - first[block] for block in second if block in first]
            found = compute_interval(steps, (lowest - highest, highest - lowest))
            yield ScoreChange(
                role=role,
                metric=metric,
                alias=alias,
                before=fmean(first.values()) if first else None,
                now=fmean(second.values()) if second else None,
                difference=fmean(steps) if steps else None,
                low=found.low,
                high=found.high,
                blocks=len(steps),
            )


def judgement_agreement(
    metric: str, role: str, before: Sequence[Score], now: Given
) -> Iterator[JudgementAgreement]:
    here = [score for score in before if score.metric == metric and score.seat.role == role]
    first = [score.value for score in here]
    second = [now.get((s.match, s.seat.key, metric)) for s in here]
    if not any(a is not None and b is not None for a, b in zip(first, second, strict=True)):
        return
    blocks = [score.block for score in here]
    alpha = krippendorff_alpha(list(zip(first, second, strict=True)), "interval", blocks)
    yield JudgementAgreement(role, metric, "alpha", **estimate_fields(alpha))
    r = blocked_correlation(first, second, blocks)
    yield JudgementAgreement(role, metric, "r", **estimate_fields(r))


def rejudged_tables(found: Rejudgement, style: Style) -> list[Table]:
    """Scores before and now, and their agreement."""
    lines = []
    for row in found.models:
        digits = style.digits_of(row.metric)
        lines.append(
            [
                row.alias,
                row.role,
                row.metric,
                format_number(row.before, digits),
                format_number(row.now, digits),
            ]
            + [
                format_signed(row.difference, digits),
                format_interval(row.low, row.high, digits),
                str(row.blocks),
            ]
        )
    before = "; ".join(
        f"{role}: {', '.join(panel) or 'none'}" for role, panel in found.before.items()
    )
    note = (
        f"`before` is the score in run {found.run} ({before}); the difference uses only blocks "
        "that have both scores, and has a 95% interval"
    )
    header = ["model", "role", "metric", "before", "now", "now − before", "95% interval", "blocks"]
    models = Table(header, lines, left=3, note=note)
    lines = [
        [
            row.role,
            row.metric,
            row.kind,
            format_number(row.value),
            format_interval(row.low, row.high),
            str(row.n),
        ]
        for row in found.agreement
    ]
    note = (
        "agreement over matches: Krippendorff's alpha (1 means identical scores) and Pearson's "
        "r (1 means an exact linear relation)"
    )
    header = ["role", "metric", "agreement", "value", "95% interval", "n"]
    return [models, Table(header, lines, left=3, note=note)]


def rejudged_rows(found: Rejudgement) -> Rows:
    """One row per model."""
    return [as_json(row) for row in found.models]


def is_rejudged(info: RunInfo) -> bool:
    """Whether the run rejudges the matches of another run."""
    return info.config.rejudged is not None


PARTS = (
    Part(
        "rejudged",
        "Rejudged",
        Rejudgement,
        compare_judgements,
        tables=rejudged_tables,
        rows=rejudged_rows,
        applies=is_rejudged,
        absent="not applicable: this run does not rejudge another run (see `parley rejudge`)",
        section="judges",
    ),
)
