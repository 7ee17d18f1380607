"""How matches of two ended, where one wins: won, drawn and lost by seat, and what losers lost
by."""

from __future__ import annotations

from collections import Counter
from typing import Any

from parley.results.scores import Findings, place_name
from parley.statistics.bradley_terry import is_win_loss


def outcomes(findings: Findings) -> list[dict[str, Any]]:
    """By model and seat: matches won, drawn and lost, and the ends that the rule noted for those
    that were lost."""
    met = findings.meetings()
    bounds, seats = findings.bounds, findings.places
    metric = next(
        (
            name
            for name in bounds
            if is_win_loss([each for each in met if each.metric == name], bounds[name])
        ),
        None,
    )
    if metric is None or seats is None:
        return []
    counts: dict[tuple[str, str], Counter[str]] = {}
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for each in met:
        if each.metric != metric or each.first_value is None or each.second_value is None:
            continue
        end = next(
            (
                str(note.facts["end"])
                for note in findings.reader.notes_of(each.match)
                if "end" in note.facts
            ),
            "",
        )
        for place, alias, value in zip(
            seats, (each.first, each.second), (each.first_value, each.second_value), strict=True
        ):
            key = (alias, place_name(*place))
            kind = "won" if value == 1 else "lost" if value == 0 else "drawn"
            counts.setdefault(key, Counter())[kind] += 1
            if kind == "lost" and end:
                reasons.setdefault(key, Counter())[end] += 1
    return [
        {
            "alias": alias,
            "seat": seat,
            "matches": found.total(),
            **{kind: found[kind] for kind in ("won", "drawn", "lost")},
        }
        | {"by": dict(sorted(reasons.get((alias, seat), Counter()).items()))}
        for (alias, seat), found in sorted(counts.items())
    ]
