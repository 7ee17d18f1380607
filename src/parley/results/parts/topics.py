"""Scores by topic or subject, if items have one (AGE, figure 2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.results.types import Figure, HeatMap
from parley.statistics import estimates
from parley.tables import Table, format_interval, format_number, pivot, plural


@dataclass(frozen=True)
class TopicScore:
    """A model's mean on the items of one topic."""

    topic: str
    alias: str
    role: str
    metric: str
    mean: float | None
    low: float | None
    high: float | None
    interval: str | None
    blocks: int
    matches: int
    missing: int


def compute_topics(run: RunScores) -> tuple[TopicScore, ...]:
    """Every model's mean by topic or subject."""
    topics = {
        str(item["id"]): str(topic)
        for item in run.reader.run.items()
        if (topic := item.get("topic") or item.get("subject"))
    }
    by_topic: dict[str, list[str]] = defaultdict(list)  # blocks
    for item, topic in topics.items():
        by_topic[topic].append(item)
    found = [
        TopicScore(
            topic,
            cell.alias,
            cell.role,
            cell.metric,
            cell.mean,
            *cell.interval,
            cell.blocks,
            cell.matches,
            cell.missing,
        )
        for topic in sorted(by_topic)
        for cell in compute_cells(run, by_topic[topic])
    ]
    order = list(run.metrics)
    return tuple(
        sorted(found, key=lambda row: (order.index(row.metric), row.role, row.topic, row.alias))
    )


def compute_cells(run: RunScores, blocks: Iterable[str]) -> list[estimates.Cell]:
    """The result of every model in every role and metric, on some of the blocks."""
    tallies = estimates.tally_cells(run.observations.in_blocks(blocks))
    return estimates.compute_cells(tallies, run.bounds, run.method)


def topic_tables(found: Sequence[TopicScore], style: Style) -> list[Table]:
    """The leading score by topic and model."""
    leading = found[0].metric
    rows = [row for row in found if row.metric == leading]
    aliases, digits = sorted({row.alias for row in rows}), style.digits_of(leading)
    cells, means = [], dict[tuple[str, str], list[float]]()
    for row in rows:
        cells.append(((row.topic, row.role), row.alias, format_topic(row, digits)))
        means.setdefault((row.topic, row.role), []).extend(() if row.mean is None else (row.mean,))
    middles = [
        format_number(sum(known) / len(known) if known else None, digits)
        for known in means.values()
    ]
    lines = [[*line, mean] for line, mean in zip(pivot(cells, aliases), middles, strict=True)]
    note = (
        f"{leading} as mean (95% interval; blocks); the last column is the mean over models; "
        f"CSV and JSON output contain all metrics{style.fixed_blocks_note}"
    )
    return [Table(["topic", "role", *aliases, "mean"], lines, left=2, note=note)]


def format_topic(row: TopicScore, digits: int) -> str:
    """A cell of the table."""
    if row.mean is None:
        return "–"
    interval = format_interval(row.low, row.high, digits)
    return f"{format_number(row.mean, digits)} ({interval}; {row.blocks})"


def topic_figures(found: Sequence[TopicScore], style: Style) -> Sequence[Figure]:
    """A heat map of the leading score for each role."""
    leading = found[0].metric
    figures = []
    for role in dict.fromkeys(row.role for row in found):
        rows = [row for row in found if (row.metric, row.role) == (leading, role)]
        topics = tuple(dict.fromkeys(row.topic for row in rows))
        aliases = tuple(sorted({row.alias for row in rows}))
        by = {(row.topic, row.alias): row for row in rows}
        title = f"{leading} by topic, {role}"
        values, low, high = (
            tuple(
                tuple(getattr(by.get((topic, a)), name, None) for a in aliases) for topic in topics
            )
            for name in ("mean", "low", "high")
        )
        alt = f"{title}: {plural(len(topics), 'topic')}, {plural(len(aliases), 'model')}"
        digits = style.digits_of(leading)
        figures.append(
            HeatMap(
                title, alt, leading, topics, aliases, values, low, high, digits, "topic", "model"
            )
        )
    return figures


PARTS = (
    Part(
        "topics",
        "By topic",
        tuple[TopicScore, ...],
        compute_topics,
        tables=topic_tables,
        figures=topic_figures,
        absent="not applicable: the items of this run have no topic or subject, or no match "
        "was played",
    ),
)
