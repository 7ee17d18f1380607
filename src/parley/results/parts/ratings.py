"""Bradley-Terry ratings, for matches between two seats in which one side wins."""

from __future__ import annotations

from dataclasses import dataclass

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.statistics import bradley_terry
from parley.tables import Table, format_interval


@dataclass(frozen=True)
class IntervalEstimate:
    """A number with its interval; None if unknown."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ModelRating:
    """A model's rating within its group: the models that are linked by a chain of matches."""

    alias: str
    group: int
    matches: int
    blocks: int
    logit: IntervalEstimate
    elo: IntervalEstimate


@dataclass(frozen=True)
class MetricRatings:
    """The ratings by one metric, and the first-mover advantage in logits."""

    metric: str
    models: tuple[ModelRating, ...]
    first_mover: IntervalEstimate


def compute_ratings(run: RunScores) -> tuple[MetricRatings, ...]:
    """Ratings by every metric that says which of two seats won."""
    found = []
    for metric, bounds in run.bounds.items():
        if bradley_terry.is_win_loss(run.meetings(metric), bounds):
            met = (
                meeting._replace(block=run.first_identical(meeting.block))
                for meeting in run.meetings(metric)
            )
            fitted = bradley_terry.fit_ratings(bradley_terry.complete_games(met))
            models = tuple(
                ModelRating(
                    m.alias,
                    m.group,
                    m.matches,
                    m.blocks,
                    IntervalEstimate(*m.logit),
                    IntervalEstimate(*m.elo),
                )
                for m in fitted.models
            )
            found.append(MetricRatings(metric, models, IntervalEstimate(*fitted.first_mover)))
    return tuple(found)


def rating_tables(found: tuple[MetricRatings, ...], style: Style) -> list[Table]:
    tables = []
    for each in found:
        rows = [
            [model.alias, *elo_cells(model.elo), str(model.blocks), str(model.matches)]
            for model in each.models
        ]
        first = each.first_mover
        notes = [
            f"Bradley-Terry ratings from {each.metric}, on the Elo scale with a mean of "
            f"1500{style.fixed_blocks_note}"
        ]
        if first.value is not None:
            ends = format_interval(first.low, first.high)
            notes.append(f"first-mover advantage: {first.value:+.2f} logits ({ends})")
        if len({model.group for model in each.models}) > 1:
            notes.append(
                "no chain of matches connects all models, so you cannot compare ratings across "
                "the groups"
            )
        header = ["model", "rating", "95% interval", "blocks", "matches"]
        tables.append(Table(header, rows, note="\n".join(notes)))
    return tables


def elo_cells(elo: IntervalEstimate) -> list[str]:
    """A rating and its interval."""
    if elo.value is None:
        return ["–", "–"]
    ends = "–" if elo.low is None or elo.high is None else f"{elo.low:.0f} to {elo.high:.0f}"
    return [f"{elo.value:.0f}", ends]


def rating_rows(found: tuple[MetricRatings, ...]) -> Rows:
    """One row per model."""
    return [
        {
            "metric": each.metric,
            "alias": model.alias,
            "group": model.group,
            "elo_value": model.elo.value,
            "elo_low": model.elo.low,
            "elo_high": model.elo.high,
            "blocks": model.blocks,
            "matches": model.matches,
        }
        for each in found
        for model in each.models
    ]


PARTS = (
    Part(
        "ratings",
        "Ratings",
        tuple[MetricRatings, ...],
        compute_ratings,
        tables=rating_tables,
        rows=rating_rows,
        absent="not applicable: ratings need matches between two seats, one of which can win",
        section="result",
    ),
)
