"""How a score went from round to round (DynaEval, figure 4), and what several samples are worth
(Pass@K)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from parley.results.parts.passes import pass_at
from parley.results.scores import Findings
from parley.statistics import estimates as plain
from parley.statistics.estimates import Observation

KS = (1, 2, 3, 5, 10, 20, 50, 100)


def by_round(findings: Findings, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every model in every role, round by round (4 a)."""
    rounds = {
        name: metric["round"] for name, metric in findings.metrics.items() if metric.get("round")
    }
    facts = ("role", "alias", "metric", "mean", "low", "high", "blocks", "matches", "missing")
    rows = [
        {**{name: row[name] for name in facts}, "round": rounds[row["metric"]]}
        for row in results
        if row["metric"] in rounds
    ]
    return sorted(rows, key=lambda row: (row["role"], row["alias"], row["round"]))


def by_partner(findings: Findings, tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every ordered pair, round by round: how a writer fares with each editor (4 b)."""
    rounds = {
        name: metric["round"] for name, metric in findings.metrics.items() if metric.get("round")
    }
    rows = [
        {
            "first_role": table["first"],
            "first": each["first"],
            "second_role": table["second"],
            "second": each["second"],
        }
        | {"metric": table["metric"], "round": rounds[table["metric"]]}
        | {
            "mean": each["cell"]["first"],
            "matches": each["cell"]["matches"],
            "blocks": each["cell"]["blocks"],
        }
        for table in tables
        if table["metric"] in rounds
        for each in table["cells"]
        if each["cell"] is not None
    ]
    return sorted(rows, key=lambda row: (row["first"], row["second"], row["round"]))


def passes(findings: Findings) -> list[dict[str, Any]]:
    """Pass@K of metrics that say what success is: the matches of a model in the leading role on one
    item are its samples."""
    found: list[dict[str, Any]] = []
    leading = findings.roles[0]
    if not findings.reader.items():
        return found  # matches against others are no samples of one thing
    for name, metric in findings.metrics.items():
        if metric["success"] is None:
            continue
        samples: dict[tuple[str, str], dict[str, list[bool]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in findings.observations:
            if row.metric == name and row.role == leading and row.value is not None:
                good = (
                    row.value >= metric["success"]
                    if metric["better"] == "higher"
                    else row.value <= metric["success"]
                )
                samples[row.role, row.alias][row.block].append(good)
        for (role, alias), items in sorted(samples.items()):
            least = min(map(len, items.values()))
            for k in [k for k in KS if k <= least]:
                values = [
                    Observation(item, 0, alias, role, name, pass_at(k, len(s), sum(s)))
                    for item, s in items.items()
                ]
                (cell,) = plain.cells(values, {name: (0.0, 1.0)}, findings.method)
                low, high, _ = cell.interval
                facts = {
                    "role": role,
                    "alias": alias,
                    "metric": name,
                    "k": k,
                    "mean": cell.mean,
                    "low": low,
                    "high": high,
                }
                found.append({**facts, "items": len(items), "samples": least})
    return found
