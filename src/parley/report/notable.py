"""Matches worth reading: the most typical one, the largest departure, the leader's worst, and every
abort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from parley.config.prices import PriceList
from parley.errors import UsageError
from parley.providers._secrets import make_secret_filter
from parley.results.part import Style
from parley.results.parts.results import order_scores
from parley.results.result import RunResult
from parley.results.transcript import Transcript, TranscriptReader
from parley.results.types import ScoreRow
from parley.store.reader import RunReader
from parley.tables import format_number

MOST_ABORTED = 20  # aborted matches whose transcripts are shown
LONGEST = 4_000  # characters of a message, or of the reasoning before it
ABORTED = ("aborted", "failed")


@dataclass(frozen=True)
class NotableMatch:
    """A match, and why it is worth reading."""

    reason: str
    transcript: Transcript

    @property
    def is_aborted(self) -> bool:
        return self.transcript.match.state in ABORTED


@dataclass(frozen=True)
class MatchChoice:
    """The matches that a page shows if it has room, each with its reason."""

    reasons: Mapping[int, str] = field(default_factory=dict)  # by match
    all: int = 0  # matches on record
    aborted: int = 0  # matches that were aborted

    def read(self, reader: RunReader) -> Iterator[NotableMatch]:
        """The matches, one after the other."""
        matches = TranscriptReader(reader, make_secret_filter(), PriceList().find)
        for number, reason in self.reasons.items():
            if row := reader.matches.find(number):
                yield NotableMatch(reason, matches.read(row))


def parse_match_limit(given: str | int) -> int | None:
    """How many matches a page shows: a number; None for the notable ones."""
    if given == "notable":
        return None
    if given == "none":
        return 0
    number = int(given) if str(given).isascii() and str(given).isdigit() else -1
    if number < 0:
        raise UsageError(
            f"--matches must be none, notable or a number of matches, not {str(given)!r}"
        )
    return number


def choose_matches(result: RunResult, reader: RunReader, limit: int | None) -> MatchChoice:
    """The notable matches; if `limit` allows more, the others by number."""
    every = sum(reader.matches.counts().values())
    if limit == 0:
        return MatchChoice(all=every)
    chosen, aborted = choose_notable(result, reader)
    if limit is not None:
        chosen = dict(list(chosen.items())[:limit])
        if len(chosen) < limit:
            for each in reader.matches.read():
                if len(chosen) == limit:
                    break
                chosen.setdefault(each.number, "" if each.state == "done" else each.state)
    return MatchChoice(chosen, every, aborted)


def choose_notable(result: RunResult, reader: RunReader) -> tuple[dict[int, str], int]:
    """Matches worth reading with the reason, and how many matches were aborted."""
    style, rows = result.style, result.part("results") or ()
    usual = {
        (row.role, row.alias): row
        for row in rows
        if row.metric == style.leading.get(row.role) and row.mean is not None
    }
    leaders = find_leaders(list(usual.values()), style)
    total: dict[int, float] = {}  # by match, how far its scores lie from the means
    farthest: tuple[float, int, str] | None = None
    worst: dict[str, tuple[float, int, str]] = {}  # by role, of the model with the best mean
    leading = sorted({row.metric for row in usual.values()})
    for score in reader.scores.read(metrics=leading) if leading else ():
        row = usual.get((score.seat.role, score.alias))
        if row is None or score.metric != row.metric or score.unscored:
            continue
        if score.value is None or row.mean is None:
            continue
        away = (score.value - row.mean) / row.sd if row.sd else 0.0  # all scores are equal
        total[score.match] = total.get(score.match, 0.0) + abs(away)
        if away and (farthest is None or abs(away) > abs(farthest[0])):
            farthest = away, score.match, describe_departure(row, score.value, style)
        below = away if row.metric in style.lower_is_better else -away
        lowest = worst.get(row.role, (0.0, 0, ""))
        if leaders[row.role] == row.alias and below > lowest[0]:
            worst[row.role] = below, score.match, describe_departure(row, score.value, style)
    chosen: dict[int, str] = {}
    if total:
        chosen[min(total, key=lambda number: (total[number], number))] = "the most typical match"
    if farthest is not None and len(total) > 1:
        add_reason(chosen, farthest[1], f"farthest from a mean: {farthest[2]}")
    for _, number, said in worst.values():
        add_reason(chosen, number, f"worst match of the model with the best mean: {said}")
    counts = reader.matches.counts()
    aborted = sum(counts.get(state, 0) for state in ABORTED)
    left = (match for match in reader.matches.read() if match.state in ABORTED)
    for match in islice(left, min(aborted, MOST_ABORTED)):
        chosen[match.number] = f"{match.state}: {match.reason or 'no reason on record'}"
    return chosen, aborted


def add_reason(chosen: dict[int, str], number: int, reason: str) -> None:
    chosen[number] = f"{chosen[number]}; {reason}" if number in chosen else reason


def find_leaders(rows: list[ScoreRow], style: Style) -> dict[str, str]:
    """By role: the model with the best mean."""
    found: dict[str, str] = {}
    for row in order_scores(rows, style):
        found.setdefault(row.role, row.alias)
    return found


def describe_departure(row: ScoreRow, value: float, style: Style) -> str:
    """How far one score lies from its model's mean."""
    digits = style.digits_of(row.metric)
    away = value - (row.mean or 0.0)
    side = "above" if away > 0 else "below"
    number = format_number(value, digits)
    far = f"{format_number(abs(away), digits)} {side} its mean"
    return f"{name_measured(row.alias, row.role, style)}: {row.metric} {number}, {far}"


def name_measured(alias: str, role: str, style: Style) -> str:
    """A model, with its role if the run ranks several roles."""
    return f"{alias} as {role.replace('_', ' ')}" if len(style.leading) > 1 else alias
