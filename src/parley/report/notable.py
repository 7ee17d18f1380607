"""Matches worth reading: the most ordinary one, the largest departure, and every abort."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parley.results.part import Style
from parley.results.result import Result
from parley.results.types import ScoreRow
from parley.store import MatchRow, RunReader
from parley.tables import format_number, plural

MOST_ABORTED = 20  # aborted matches whose transcripts are shown
LONGEST = 4_000  # characters of a reply


@dataclass(frozen=True)
class Spoken:
    """One reply in a match."""

    round: int
    seat: str
    alias: str
    text: str
    cut: int = 0  # characters that are left out


@dataclass(frozen=True)
class NotableMatch:
    """A match, why it is worth reading, and what was said in it."""

    row: MatchRow
    reason: str
    scores: str
    replies: tuple[Spoken, ...]


def find_notable(result: Result, reader: RunReader) -> tuple[list[NotableMatch], int]:
    """The matches worth reading, and how many aborted ones are left out."""
    style, rows = result.style, result.part("results") or ()
    usual = {
        (row.role, row.alias): row
        for row in rows
        if row.metric == style.leading.get(row.role) and row.mean is not None
    }
    total: dict[int, float] = {}  # by match, how far its scores lie from the means
    farthest: tuple[float, int, str] | None = None
    shown: dict[int, dict[str, float | None]] = {}
    for score in reader.scores():
        row = usual.get((score.seat.role, score.alias))
        if row is None or score.metric != row.metric or score.idle:
            continue
        shown.setdefault(score.match, {})[score.alias] = score.value
        if score.value is None or row.mean is None:
            continue
        away = (score.value - row.mean) / row.sd if row.sd else 0.0  # all scores are equal
        total[score.match] = total.get(score.match, 0.0) + abs(away)
        if away and (farthest is None or abs(away) > abs(farthest[0])):
            farthest = away, score.match, describe_departure(row, score.value, style)
    chosen: dict[int, str] = {}
    if total:
        chosen[min(total, key=lambda number: (total[number], number))] = "the most typical match"
    if farthest is not None and len(total) > 1:
        chosen.setdefault(farthest[1], f"farthest from a mean: {farthest[2]}")
    aborted = [match for match in reader.matches() if match.state in ("aborted", "failed")]
    for match in aborted[:MOST_ABORTED]:
        chosen[match.number] = f"{match.state}: {match.reason or 'no reason on record'}"
    digits = {role: style.digits_of(metric) for role, metric in style.leading.items()}
    found = []
    for number, reason in chosen.items():
        row_ = reader.match(number)
        if row_ is None:
            continue
        places = max(digits.values(), default=2)
        scores = ", ".join(
            f"{alias} {format_number(value, places)}"
            for alias, value in shown.get(number, {}).items()
        )
        found.append(NotableMatch(row_, reason, scores, tuple(list_spoken(reader, row_))))
    return found, max(0, len(aborted) - MOST_ABORTED)


def describe_departure(row: ScoreRow, value: float, style: Style) -> str:
    """How far one score lies from its model's mean."""
    digits = style.digits_of(row.metric)
    away = value - (row.mean or 0.0)
    side = "above" if away > 0 else "below"
    number = format_number(value, digits)
    return f"{row.alias} {number}, {format_number(abs(away), digits)} {side} its mean"


def list_spoken(reader: RunReader, match: MatchRow) -> Iterator[Spoken]:
    """What seats said, in the order of time."""
    names = {seat.key: alias for seat, alias in match.seats.items()}
    labels = {seat.key: str(seat) for seat in match.seats}
    for message in reader.messages(match.number):
        if message["kind"] == "reply":
            text, seat = message["content"], message["sender"]
            yield Spoken(
                message["round"],
                labels.get(seat, seat),
                names.get(seat, ""),
                text[:LONGEST],
                max(0, len(text) - LONGEST),
            )


def describe_cut(spoken: Spoken) -> str:
    return f" […{plural(spoken.cut, 'character')} left out]" if spoken.cut else ""
