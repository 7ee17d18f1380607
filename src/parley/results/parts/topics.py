"""Scores by topic or subject, where items have one (AGE, figure 2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from parley.results.parts.courses import fixed
from parley.results.scores import Findings
from parley.statistics import estimates as plain
from parley.statistics.estimates import Observation
from parley.tables import Table, between, nothing, number

Data = Mapping[str, Any]


def topics(findings: Findings) -> list[dict[str, Any]]:
    """Every model's mean by topic or subject: what a heat map of models and topics shows (figure
    2)."""
    named = {
        str(item["id"]): item.get("topic") or item.get("subject")
        for item in findings.reader.items()
    }
    topic_of = {item: str(topic) for item, topic in named.items() if topic}
    by_topic: dict[str, list[Observation]] = defaultdict(list)
    for row in findings.observations:
        if row.block in topic_of:
            by_topic[topic_of[row.block]].append(row)
    found = []
    for topic in sorted(by_topic):
        for cell in plain.cells(by_topic[topic], findings.bounds, findings.method):
            low, high, kind = cell.interval
            facts = {
                "topic": topic,
                "alias": cell.alias,
                "role": cell.role,
                "metric": cell.metric,
                "mean": cell.mean,
            }
            counts = {"blocks": cell.blocks, "matches": cell.matches, "missing": cell.missing}
            found.append({**facts, "low": low, "high": high, "interval": kind, **counts})
    order = list(findings.metrics)
    return sorted(
        found, key=lambda row: (order.index(row["metric"]), row["role"], row["topic"], row["alias"])
    )


def topic_tables(data: Data) -> list[Table]:
    """The leading score by topic and model."""
    if not data["topics"]:
        return [nothing("the items of this run have no topics or subjects, or nothing was played")]
    leading = data["topics"][0]["metric"]
    rows = [row for row in data["topics"] if row["metric"] == leading]
    aliases, digits = sorted({row["alias"] for row in rows}), data["digits"][leading]
    cells: dict[tuple[str, str], dict[str, Data]] = {}
    for row in rows:
        cells.setdefault((row["topic"], row["role"]), {})[row["alias"]] = row
    lines = []
    for (topic, role), by in cells.items():
        means = [row["mean"] for row in by.values() if row["mean"] is not None]
        middle = number(sum(means) / len(means) if means else None, digits)
        lines.append([topic, role, *(heat(by.get(alias), digits) for alias in aliases), middle])
    note = (
        f"{leading}: mean (95% interval; blocks), and the mean over models; other metrics are in "
        f"CSV and JSON{fixed(data)}"
    )
    return [Table(["topic", "role", *aliases, "mean"], lines, left=2, note=note)]


def heat(cell: Data | None, digits: int) -> str:
    """A cell of a heat map."""
    if cell is None or cell["mean"] is None:
        return "–"
    return (
        f"{number(cell['mean'], digits)} ({between(cell['low'], cell['high'], digits)}; "
        f"{cell['blocks']})"
    )
