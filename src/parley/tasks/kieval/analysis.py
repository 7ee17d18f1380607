"""How interviews ended, by model (KIEval, figure 4), from what the rule wrote down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from parley.results.scores import Findings
from parley.statistics.intervals import interval

NONE = "none"  # the interview went on to its last round
OTHERS = ("record_ended", "no_question")  # what ended it is no word of an evaluator's


def stops(findings: Findings) -> list[dict[str, Any]]:
    """Interviews, the reasons that ended them early, and first answers that could not be read;
    empty where none was held."""
    # block, what ended it, whether the answer could be read
    held: dict[tuple[str, str], list[tuple[str, str, bool]]] = {}
    for match in findings.matches:
        last = next(
            (
                note.facts
                for note in reversed(findings.reader.notes_of(match.number))
                if "evaluated" in note.facts
            ),
            None,
        )
        if last is None:
            continue
        for seat, alias in match.seats.items():
            if (role := seat.role) in findings.roles and seat not in match.idle:
                held.setdefault((role, alias), []).append(
                    (match.block, str(last["stop"]), last["first"] is not None)
                )
    return [
        {
            "role": role,
            "alias": alias,
            "interviews": len(found),
            "reasons": counted(end for _, end, _ in found),
            "early": share((block, end not in (NONE, *OTHERS)) for block, end, _ in found),
            "unreadable": share((block, not read) for block, _, read in found),
        }
        for (role, alias), found in sorted(held.items())
    ]


def counted(ends: Iterable[str]) -> dict[str, int]:
    """How often each reason was given, those that ended nothing last."""
    found = Counter(ends)
    return {
        reason: found[reason]
        for reason in sorted(found, key=lambda reason: (reason == NONE, reason))
    }


def share(cases: Iterable[tuple[str, bool]]) -> dict[str, Any]:
    """How many cases, and their share with its interval over blocks."""
    blocks: dict[str, list[bool]] = {}
    for block, case in cases:
        blocks.setdefault(block, []).append(case)
    means = [fmean(found) for found in blocks.values()]
    low, high, _ = interval(means, (0.0, 1.0))
    return {
        "count": sum(map(sum, blocks.values())),
        "share": fmean(means),
        "low": low,
        "high": high,
        "blocks": len(means),
    }
