"""How far judges can be trusted in a run: with each other, beside what was measured (DynaEval
§3.1), towards length and self."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any, NamedTuple

from parley.results.scores import Findings
from parley.rules.pool import Seat
from parley.statistics.agreement import Estimate, krippendorff_alpha
from parley.statistics.correlation import (
    Correlation,
    blocked_correlation,
    centred_correlation,
    spearman,
)
from parley.statistics.intervals import interval
from parley.statistics.judge_bias import Judgement, self_preference


class Vote(NamedTuple):
    """What a judge gave to a seat; None where its judgement could not be read."""

    block: str
    match: int
    note: int  # where a match is judged several times, which time this is
    judge: str  # the seat
    name: str  # who sat there
    seat: str  # who was judged
    role: str
    alias: str
    score: float | None
    mark: float | None  # as it was given, where the score is what that is worth


def judges(findings: Findings) -> dict[str, Any] | None:
    """How every judge votes, how far the panel agrees, what it follows and what it favours; None
    without judged scores."""
    judged = next((name for name, metric in findings.metrics.items() if metric.get("judged")), None)
    if judged is None:
        return None
    votes = votes_of(findings)
    bounds = findings.bounds[judged]
    panels = {vote.match: 0 for vote in votes} | {
        vote.match: 1 for vote in votes if vote.score is None
    }
    return {
        "metric": judged,
        "panel": panel(votes, bounds),
        "incomplete": {"matches": sum(panels.values()), "of": len(panels)},
        "agreement": agreement(votes),
        "validity": [row for role in findings.roles for row in compared(findings, role, judged)],
        "bias": [*lengthy(findings, votes), *selfish(findings, votes, bounds)],
        "also_play": playing(findings, votes),
    }


def votes_of(findings: Findings) -> list[Vote]:
    """Every vote that was asked for in a match that counts, on seats that count; one that could not
    be read is None."""
    found = []
    for match in findings.matches:
        for number, note in enumerate(findings.reader.notes_of(match.number)):
            if "votes" not in note.facts:
                continue
            for judge, given in note.facts["votes"].items():
                for seat, alias in match.seats.items():
                    role = seat.role
                    if role in findings.roles and seat not in match.idle:
                        vote = (given or {}).get(seat.key, {})
                        who = (judge, match.seats[Seat.of(judge)], seat.key, role, alias)
                        score = vote.get("score")
                        found.append(
                            Vote(
                                match.block,
                                match.number,
                                number,
                                *who,
                                score,
                                vote.get("mark", score),
                            )
                        )
    return found


def panel(votes: list[Vote], bounds: tuple[float, float]) -> list[dict[str, Any]]:
    """How each judge votes on each role: mean with its interval over blocks, votes given of those
    asked for."""
    found = []
    seats = sorted({(vote.judge, vote.name) for vote in votes})
    names = [name for _, name in seats]
    for judge, name in seats:
        for role in dict.fromkeys(vote.role for vote in votes):
            mine = [
                vote for vote in votes if (vote.judge, vote.name, vote.role) == (judge, name, role)
            ]
            blocks: dict[str, list[float]] = {}
            for vote in mine:
                if vote.score is not None:
                    blocks.setdefault(vote.block, []).append(vote.score)
            means = [fmean(scores) for scores in blocks.values()]
            low, high, _ = interval(means, bounds)
            shown = name if names.count(name) == 1 else f"{name} ({judge})"
            given = sum(map(len, blocks.values()))
            facts = {
                "judge": shown,
                "role": role,
                "votes": given,
                "asked": len(mine),
                "blocks": len(means),
            }
            found.append(
                {**facts, "mean": fmean(means) if means else None, "low": low, "high": high}
            )
    return found


def agreement(votes: list[Vote]) -> list[dict[str, Any]]:
    """Krippendorff's alpha of the panel, by the role that it judges, over what at least two have
    judged."""
    seats = sorted({vote.judge for vote in votes})
    twice = len({vote.name for vote in votes}) < len(seats)
    found = []
    for role in dict.fromkeys(vote.role for vote in votes):
        units: dict[tuple[str, int, int, str], dict[str, float | None]] = {}
        for vote in votes:
            if vote.role == role:
                units.setdefault((vote.block, vote.match, vote.note, vote.seat), {})[vote.judge] = (
                    vote.mark
                )
        rows = [[given.get(seat) for seat in seats] for given in units.values()]
        alpha = krippendorff_alpha(rows, "ordinal", [block for block, *_ in units])
        found.append({"role": role, "judges": len(seats), "one_model_twice": twice, **facts(alpha)})
    return found


def compared(findings: Findings, role: str, judged: str) -> Iterator[dict[str, Any]]:
    """What judges gave beside what was measured of a role: over matches, within items, and model by
    model."""
    measured = findings.measured(role)
    by_match: dict[tuple[str, int, str], dict[str, float | None]] = {}
    by_model: dict[str, dict[str, list[float]]] = {}
    for row in findings.observations:
        if row.role == role and row.metric in (judged, measured):
            by_match.setdefault((row.block, row.match, row.alias), {})[row.metric] = row.value
            if row.value is not None:
                by_model.setdefault(row.alias, {}).setdefault(row.metric, []).append(row.value)
    if measured is None or not any({judged, measured} <= by.keys() for by in by_match.values()):
        return
    left, right = ([by.get(metric) for by in by_match.values()] for metric in (judged, measured))
    blocks = [block for block, _, _ in by_match]
    models = [
        (fmean(each[judged]), fmean(each[measured]))
        for each in by_model.values()
        if {judged, measured} <= each.keys()
    ]
    yield {
        "role": role,
        "measured": measured,
        "over": "matches",
        **facts(blocked_correlation(left, right, blocks)),
    }
    yield {
        "role": role,
        "measured": measured,
        "over": "within items",
        **facts(centred_correlation(left, right, blocks)),
    }
    if len(models) > 2:  # any two are in order, or out of it
        ranked = spearman([a for a, _ in models], [b for _, b in models])
        yield {"role": role, "measured": measured, "over": "models", **facts(ranked)}


def lengthy(findings: Findings, votes: list[Vote]) -> Iterator[dict[str, Any]]:
    """How far who says more about the same item is rated higher: a bias only as far as more is not
    better."""
    lengths = findings.reader.reply_lengths()
    for role in dict.fromkeys(vote.role for vote in votes):
        given: dict[tuple[str, int, str], list[float]] = {}
        for vote in votes:
            if vote.role == role and vote.score is not None:
                given.setdefault((vote.block, vote.match, vote.seat), []).append(vote.score)
        said = [lengths.get((match, Seat.of(seat))) for _, match, seat in given]
        found = centred_correlation(
            [fmean(scores) for scores in given.values()], said, [block for block, _, _ in given]
        )
        yield {"about": "length", "judge": None, "role": role, **facts(found)}


def selfish(
    findings: Findings, votes: list[Vote], bounds: tuple[float, float]
) -> Iterator[dict[str, Any]]:
    """How much more a judge gives to its own model than others do, beyond what it so gives to other
    models."""
    models = findings.config.models
    own = {
        judge: alias
        for judge in {vote.name for vote in votes}
        for alias in findings.config.contestants
        if models[alias]["model"] == models[judge]["model"]
    }
    for judge in sorted(own):
        given = [Judgement(vote.block, vote.name, vote.alias, vote.score) for vote in votes]
        yield {
            "about": "itself",
            "judge": judge,
            "role": None,
            **facts(self_preference(given, judge, own, bounds)),
        }


def playing(findings: Findings, votes: list[Vote]) -> list[str]:
    """The judges whose models play as well."""
    models = findings.config.models
    played = {models[alias]["model"] for alias in findings.config.contestants}
    return sorted(name for name in {vote.name for vote in votes} if models[name]["model"] in played)


def facts(found: Estimate | Correlation) -> dict[str, Any]:
    """A figure, its interval and n; where rows share blocks, how many blocks there are."""
    value = found.r if isinstance(found, Correlation) else found.value
    blocks = None if isinstance(found, Correlation) else found.blocks
    return {
        "value": value,
        "low": found.interval.low,
        "high": found.interval.high,
        "n": found.n,
        "blocks": blocks,
    }
