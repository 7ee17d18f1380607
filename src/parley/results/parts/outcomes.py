"""Outcomes of matches between two seats: won, drawn and lost, and the reasons for losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores, seat_name
from parley.results.types import Bar, Bars, Figure
from parley.rules.notes import Ended
from parley.statistics.bradley_terry import is_win_loss
from parley.tables import Table

KINDS = ("won", "drawn", "lost")


@dataclass(frozen=True)
class Outcomes:
    """How the matches of a model in one seat ended; `by`: the reasons for its losses."""

    alias: str
    seat: str
    matches: int
    won: int
    drawn: int
    lost: int
    by: dict[str, int]


def compute_outcomes(run: RunScores) -> tuple[Outcomes, ...]:
    """By model and seat: matches won, drawn and lost, and the reasons for losses that the rule
    noted."""
    metric = next(
        (name for name, bounds in run.bounds.items() if is_win_loss(run.meetings(name), bounds)),
        None,
    )
    if metric is None or run.two_seats is None:
        return ()
    ends = {match.number: note.end for match, note in run.notes(Ended)}
    counts: dict[tuple[str, str], Counter[str]] = {}
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for each in run.meetings(metric):
        if each.first_value is None or each.second_value is None:
            continue
        sides = zip(
            run.two_seats,
            (each.first, each.second),
            (each.first_value, each.second_value),
            strict=True,
        )
        for seat, alias, value in sides:
            key = (alias, seat_name(*seat))
            kind = "won" if value == 1 else "lost" if value == 0 else "drawn"
            counts.setdefault(key, Counter())[kind] += 1
            if kind == "lost" and ends.get(each.match):
                reasons.setdefault(key, Counter())[ends[each.match]] += 1
    return tuple(
        Outcomes(
            alias,
            seat,
            found.total(),
            found["won"],
            found["drawn"],
            found["lost"],
            dict(sorted(reasons.get((alias, seat), Counter()).items())),
        )
        for (alias, seat), found in sorted(counts.items())
    )


def outcome_tables(found: Sequence[Outcomes], style: Style) -> list[Table]:
    """Numbers of matches, a column for each reason."""
    ends = list(dict.fromkeys(end for row in found for end in row.by))
    lines = [
        [row.alias, row.seat, str(row.matches), *(str(getattr(row, kind)) for kind in KINDS)]
        + [str(row.by.get(end, 0)) for end in ends]
        for row in found
    ]
    header = ["model", "seat", "matches", *KINDS, *(f"by {end}" for end in ends)]
    note = "the numbers count matches; `--part roles` shows win rates with intervals"
    return [Table(header, lines, left=2, note=note)]


def outcome_rows(found: Sequence[Outcomes]) -> Rows:
    """One row per model and seat, one column per reason."""
    ends = dict.fromkeys(end for row in found for end in row.by)
    return [
        {
            "alias": row.alias,
            "seat": row.seat,
            "matches": row.matches,
            "won": row.won,
            "drawn": row.drawn,
            "lost": row.lost,
            **{f"lost_by_{end.replace(' ', '_')}": row.by.get(end, 0) for end in ends},
        }
        for row in found
    ]


def outcome_figures(found: Sequence[Outcomes], style: Style) -> Sequence[Figure]:
    """A bar for each model and seat."""
    bars = tuple(
        Bar(
            f"{row.alias}, {row.seat}",
            {kind: float(getattr(row, kind)) for kind in KINDS},
            f"{row.won} of {row.matches} won",
            row.alias,
        )
        for row in found
    )
    alt = "; ".join(f"{bar.label}: {bar.note}" for bar in bars)
    return [Bars("Matches won, drawn and lost", alt, "matches", bars)]


PARTS = (
    Part(
        "outcomes",
        "How matches ended",
        tuple[Outcomes, ...],
        compute_outcomes,
        tables=outcome_tables,
        rows=outcome_rows,
        figures=outcome_figures,
        absent="not applicable: wins and losses need matches between two seats, one of which "
        "can win",
    ),
)
