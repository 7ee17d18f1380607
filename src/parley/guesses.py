"""What word guessing shows beyond its scores (AGE §4): how matches went, scores that are zero, scores by topic."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from parley.findings import Findings
from parley.scoring.decay import BEYOND, age
from parley.statistics import results as plain
from parley.statistics.results import Observation


def guessing(findings: Findings, results: list[dict[str, Any]]) -> dict[str, Any] | None:
    """How many matches went beyond two rounds and had both words guessed, and by model what stands beside its means."""
    played = {
        match["number"]: (match["block"], note["guessing"])
        for match in findings.archive.matches()
        for note in findings.archive.notes(match["number"])
        if "guessing" in note
    }
    if not played:
        return None
    beyond = {number: found for number, found in played.items() if found[1]["rounds"] > BEYOND}
    shares = {
        "beyond two rounds": [(block, number, number in beyond) for number, (block, _) in played.items()],
        "of these, both words guessed": [(block, number, note["guessed"]) for number, (block, note) in beyond.items()],
        "of all, both words guessed": [(block, number, note["guessed"]) for number, (block, note) in played.items()],
    }
    means = {(row["alias"], row["metric"]): row["mean"] for row in results}
    models = []
    for alias in findings.config.contestants:
        scores = [row for row in findings.observations if row.alias == alias and row.metric == "age"]
        zeros = [(row.block, row.match, row.value == 0) for row in scores if row.value is not None]
        both = [(row.block, row.match, played[row.match][1]["guessed"]) for row in scores if row.match in played]
        parts = {name: means.get((alias, name)) for name in ("age", "comprehension", "confusion")}
        harmonic = of_means(parts["comprehension"], parts["confusion"])
        zero, guessed = share(findings, zeros), share(findings, both)
        counts = {"matches": len(scores), "missing": len(scores) - len(zeros)}
        models.append({"alias": alias, **parts, "harmonic": harmonic, "zeros": zero, "guessed": guessed, **counts})
    return {"matches": [{"what": what, **share(findings, rows)} for what, rows in shares.items()], "models": models}


def of_means(comprehension: float | None, confusion: float | None) -> float | None:
    """The harmonic mean of two means, where both are known: more than the mean of harmonic means."""
    return None if comprehension is None or confusion is None else age(comprehension, confusion)


def share(findings: Findings, rows: list[tuple[str, int, bool]]) -> dict[str, Any]:
    """How many of so many, and the share of them with its interval over blocks."""
    counts = {"count": sum(holds for _, _, holds in rows), "of": len(rows)}
    found = plain.cells([Observation(block, n, "", "", "", float(h)) for block, n, h in rows], {"": (0.0, 1.0)}, findings.method)
    if not found:
        return {**counts, "share": None, "low": None, "high": None}
    low, high, _ = found[0].interval
    return {**counts, "share": found[0].mean, "low": low, "high": high}


def topics(findings: Findings) -> list[dict[str, Any]]:
    """Every model's mean by topic, where items have topics: what a heat map of models and topics shows (figure 2)."""
    topic_of = {str(item["id"]): item["topic"] for item in findings.archive.items() if item.get("topic")}
    by_topic: dict[str, list[Observation]] = defaultdict(list)
    for row in findings.observations:
        if row.block in topic_of:
            by_topic[topic_of[row.block]].append(row)
    found = []
    for topic in sorted(by_topic):
        for cell in plain.cells(by_topic[topic], findings.bounds, findings.method):
            low, high, kind = cell.interval
            facts = {"topic": topic, "alias": cell.alias, "role": cell.role, "metric": cell.metric, "mean": cell.mean}
            counts = {"blocks": cell.blocks, "matches": cell.matches, "missing": cell.missing}
            found.append({**facts, "low": low, "high": high, "interval": kind, **counts})
    order = list(findings.metrics)
    return sorted(found, key=lambda row: (order.index(row["metric"]), row["role"], row["topic"], row["alias"]))
