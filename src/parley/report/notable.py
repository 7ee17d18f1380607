"""Matches worth reading: the most typical one, the largest departure, the leader's worst, and every
abort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from parley.errors import UsageError
from parley.results.part import Style
from parley.results.parts.results import order_scores
from parley.results.result import RunResult
from parley.results.scores import parse_metric
from parley.results.transcript import LEFT_OUT, PASSAGE, read_turns
from parley.results.types import ScoreRow
from parley.rules.pool import Seat
from parley.store import MatchRow, RunReader, ViolationRow
from parley.tables import Table, format_number, plural

MOST_ABORTED = 20  # aborted matches whose transcripts are shown
LONGEST = 4_000  # characters of a message
ROOM = 800_000  # characters of all transcripts on a page
AROUND = 300  # characters of HTML around a message


@dataclass(frozen=True)
class Spoken:
    """One message in a match. `seat` and `alias` are empty if the referee sent it."""

    round: int
    seat: str
    alias: str
    text: str
    cut: int = 0  # characters that are left out
    to: str = ""  # the seats that the referee sent it to
    faults: tuple[str, ...] = ()  # what was wrong with a reply


@dataclass(frozen=True)
class NotableMatch:
    """A match, why it is worth reading, what was said in it, and its scores."""

    row: MatchRow
    reason: str
    scores: str
    messages: tuple[Spoken, ...]
    table: Table

    @property
    def size(self) -> int:
        return sum(len(each.text) + AROUND for each in self.messages)


@dataclass(frozen=True)
class MatchSelection:
    """The matches on a page, and the counts of those that are not."""

    matches: tuple[NotableMatch, ...] = ()
    all: int = 0  # matches on record
    aborted: int = 0  # matches that were aborted, and are left out
    too_large: int = 0  # matches for which the page has no room


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


def select_matches(
    result: RunResult, reader: RunReader, limit: int | None, room: int = ROOM
) -> MatchSelection:
    """The matches to show: the notable ones; if `limit` allows more, the others by number."""
    every = sum(reader.counts().values())
    if limit == 0:
        return MatchSelection(all=every)
    chosen, aborted = choose_notable(result, reader)
    if limit is not None:
        chosen = dict(list(chosen.items())[:limit])
        if len(chosen) < limit:
            for each in reader.matches():
                if len(chosen) == limit:
                    break
                chosen.setdefault(each.number, "" if each.state == "done" else each.state)
    found = list[NotableMatch]()
    for number, reason in chosen.items():
        row = reader.match(number)
        if row is None:
            continue
        match = NotableMatch(
            row,
            reason,
            list_leading_scores(reader, row, result.style),
            tuple(list_messages(reader, row)),
            tabulate_scores(reader, row),
        )
        room -= match.size
        if room < 0:
            break
        found.append(match)
    left = aborted - sum(match.row.state in ("aborted", "failed") for match in found)
    return MatchSelection(tuple(found), every, left, len(chosen) - len(found))


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
    for score in reader.scores(metrics=leading) if leading else ():
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
    counts = reader.counts()
    aborted = counts.get("aborted", 0) + counts.get("failed", 0)
    left = (match for match in reader.matches() if match.state in ("aborted", "failed"))
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


def list_leading_scores(reader: RunReader, match: MatchRow, style: Style) -> str:
    """The scores of a match by the metric that each role is ranked by."""
    found = []
    for seat, by in reader.scores_of(match.number).items():
        metric = style.leading.get(seat.role)
        if metric in by and seat not in match.unscored:
            number = format_number(by[metric], style.digits_of(metric))
            found.append(f"{name_measured(match.seats[seat], seat.role, style)}: {metric} {number}")
    return ", ".join(found)


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


def list_messages(reader: RunReader, match: MatchRow) -> Iterator[Spoken]:
    """What the referee and the seats said, in the order of time. Paragraphs of the referee that
    were shown before are left out."""
    seen: set[str] = set()
    for turn in read_turns(reader, match, reader.violations(match.number)):
        text, faults = turn.text, tuple(map(describe_fault, turn.violations))
        if turn.seat is None:
            text = leave_out_repeated(text, seen)
            if text.strip() == LEFT_OUT:
                continue
        cut = max(0, len(text) - LONGEST)
        if turn.seat is None:
            to = describe_audience(turn.audience, match)
            yield Spoken(turn.round, "", "", text[:LONGEST], cut, to)
        else:
            seat, alias = str(turn.seat), match.seats.get(turn.seat, "")
            yield Spoken(turn.round, seat, alias, text[:LONGEST], cut, faults=faults)


def describe_fault(fault: ViolationRow) -> str:
    return f"{fault.kind}: {fault.detail} ({fault.outcome})"


def describe_audience(audience: Sequence[Seat], match: MatchRow) -> str:
    """The seats that the referee spoke to."""
    everybody = len(audience) == len(match.seats) > 1
    return "all seats" if everybody else ", ".join(map(str, audience))


def leave_out_repeated(text: str, seen: set[str]) -> str:
    """A text without long paragraphs that were seen before; it adds its own to them."""
    kept = list[str]()
    for paragraph in text.split("\n\n"):
        if len(paragraph) < PASSAGE or paragraph not in seen:
            kept.append(paragraph)
        elif kept[-1:] != [LEFT_OUT]:
            kept.append(LEFT_OUT)
        seen.add(paragraph)
    return "\n\n".join(kept)


def tabulate_scores(reader: RunReader, match: MatchRow) -> Table:
    """The scores of a match, one row per seat."""
    found = reader.scores_of(match.number)
    metrics = [parse_metric(each) for each in reader.info.identity["metrics"]]
    given = [each for each in metrics if any(each.name in by for by in found.values())]
    header = ["seat", "model", *(f"{m.name} ({m.unit})" if m.unit else m.name for m in given)]
    rows = []
    for seat, by in found.items():
        values = [format_number(by.get(each.name), each.digits) for each in given]
        rows.append([str(seat), match.seats[seat], *values])
    return Table(header, rows, left=2)


def describe_cut(spoken: Spoken) -> str:
    return f" […{plural(spoken.cut, 'character')} left out]" if spoken.cut else ""
