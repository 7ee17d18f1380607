"""How far judges can be trusted in a run: with each other, and against what was measured (DynaEval §3.1)."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from parley.findings import Findings
from parley.pool import Seat
from parley.statistics.agreement import Estimate, krippendorff_alpha
from parley.statistics.correlation import Correlation, pearson, spearman
from parley.statistics.judges import validity


def judges(findings: Findings) -> dict[str, Any] | None:
    """Agreement of the panel and correlation with the measured metric, over matches and over models; None without judges."""
    judged = next((name for name, metric in findings.metrics.items() if metric.get("judged")), None)
    measured = next((name for name, metric in findings.metrics.items() if not metric.get("judged")), None)
    if judged is None:
        return None
    votes = votes_of(findings)
    pairs = [row for role in findings.roles for row in compared(findings, role, judged, measured)] if measured else []
    return {"metric": judged, "measured": measured, "panel": panel(votes), "agreement": agreement(votes), "validity": pairs}


def votes_of(findings: Findings) -> list[dict[str, Any]]:
    """Every vote on record: who judged whom in which block, and how."""
    found = []
    for match in findings.archive.matches():
        for note in findings.archive.notes(match["number"]):
            for judge, given in note.get("votes", {}).items():
                for seat, vote in given.items():
                    row = {"block": match["block"], "match": match["number"], "judge": match["seats"][judge], "seat": judge}
                    found.append({**row, "role": Seat.of(seat).role, "alias": match["seats"][seat], "score": vote["score"]})
    return found


def panel(votes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How each judge votes on the whole."""
    found = []
    for judge in sorted({vote["judge"] for vote in votes}):
        scores = [vote["score"] for vote in votes if vote["judge"] == judge]
        found.append({"judge": judge, "votes": len(scores), "mean": fmean(scores)})
    return found


def agreement(votes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Krippendorff's alpha of the panel, by the role that it judges."""
    found = []
    seats = sorted({vote["seat"] for vote in votes})
    for role in sorted({vote["role"] for vote in votes}):
        units: dict[tuple[int, str], dict[str, float]] = {}
        blocks: dict[tuple[int, str], str] = {}
        for vote in votes:
            if vote["role"] == role:
                units.setdefault((vote["match"], vote["alias"]), {})[vote["seat"]] = vote["score"]
                blocks[vote["match"], vote["alias"]] = vote["block"]
        rows = [[given.get(seat) for seat in seats] for given in units.values()]
        found.append({"role": role, "judges": len(seats), **facts(krippendorff_alpha(rows, "interval", list(blocks.values())))})
    return found


def compared(findings: Findings, role: str, judged: str, measured: str) -> list[dict[str, Any]]:
    """What judges gave beside what was measured: match by match within items, and model by model."""
    by_match: dict[tuple[int, str], dict[str, float | None]] = {}
    blocks: dict[tuple[int, str], str] = {}
    by_model: dict[str, dict[str, list[float]]] = {}
    for row in findings.observations:
        if row.role == role and row.metric in (judged, measured):
            by_match.setdefault((row.match, row.alias), {})[row.metric] = row.value
            blocks[row.match, row.alias] = row.block
            if row.value is not None:
                by_model.setdefault(row.alias, {}).setdefault(row.metric, []).append(row.value)
    rows = list(by_match.values())
    left, right = [row.get(judged) for row in rows], [row.get(measured) for row in rows]
    models = [(fmean(each[judged]), fmean(each[measured])) for each in by_model.values() if {judged, measured} <= each.keys()]
    found: dict[str, Estimate | Correlation] = {
        "matches": pearson(left, right),
        "within items": validity(left, right, list(blocks.values())),
        "models": spearman([a for a, _ in models], [b for _, b in models]),
    }
    return [{"role": role, "over": over, **facts(each)} for over, each in found.items()]


def facts(found: Estimate | Correlation) -> dict[str, Any]:
    value = found.r if isinstance(found, Correlation) else found.value
    return {"value": value, "low": found.interval.low, "high": found.interval.high, "n": found.n}
