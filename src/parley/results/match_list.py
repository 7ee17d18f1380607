"""Lists the matches of a run, filtered by model, item, score or violation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parley.errors import UsageError, unknown_name
from parley.results.match_notes import MarkKind
from parley.results.run_facts import group_attempts
from parley.results.scores import choose_ranking_metric, parse_metric
from parley.rules.pool import Seat
from parley.rules.task import Metric, name_unprotected
from parley.store.reader import RunReader
from parley.store.types import MatchRow
from parley.tables import Table, format_number, plural

BROKEN = ("aborted", "failed")
STATE_KINDS: dict[str, MarkKind] = {
    "done": "good",
    "running": "warn",
    "aborted": "bad",
    "failed": "bad",
}


@dataclass(frozen=True)
class MatchFilter:
    """Which matches are listed."""

    model: str | None = None
    item: str | None = None
    worst: int | None = None  # how many, the lowest score first
    violations: bool = False  # only matches in which a rule was broken
    aborted: bool = False  # only matches that were not played to their end


@dataclass(frozen=True)
class ListedSeat:
    """A seat that is scored, with the metric that its role is ranked by."""

    seat: Seat
    alias: str
    metric: Metric | None
    score: float | None
    is_unprotected: bool = False

    @property
    def share(self) -> float | None:
        """The score on a scale from the worst (0) to the best (1) value of the metric."""
        if self.metric is None or self.score is None or self.metric.high <= self.metric.low:
            return None
        share = (self.score - self.metric.low) / (self.metric.high - self.metric.low)
        return 1 - share if self.metric.better == "lower" else share

    @property
    def score_text(self) -> str:
        number = format_number(self.score, self.metric.digits if self.metric else 2)
        return f"{number} (unprotected)" if self.is_unprotected else number


@dataclass(frozen=True)
class ListedMatch:
    """A match with its scores; `focus` is the seat that the list is about."""

    row: MatchRow
    seats: tuple[ListedSeat, ...]  # the best first
    scores: Mapping[Seat, Mapping[str, float | None]]
    violations: int
    focus: ListedSeat | None = None

    def to_dict(self) -> dict[str, Any]:
        """The form of `show --matches --json`."""
        return {
            **self.row.to_dict(),
            "scores": {seat.key: dict(by) for seat, by in self.scores.items()},
            "violations": self.violations,
        }


def list_matches(reader: RunReader, wanted: MatchFilter) -> list[ListedMatch]:
    """The matches that pass a filter: by number, or the worst first."""
    known, roles = reader.info.config.models, reader.info.identity["roles"]
    metrics = [parse_metric(each) for each in reader.info.identity["metrics"]]
    if wanted.model is not None and wanted.model not in known:
        raise unknown_name("model", wanted.model, known)
    rows = list(reader.matches.read())
    items = {row.item for row in rows if row.item is not None}
    if wanted.item is not None and wanted.item not in items:
        if not items:
            raise UsageError(
                f"{reader.info.id} has no items, so its matches cannot be filtered by item: "
                "remove --item"
            )
        raise unknown_name("item", wanted.item, items)
    scores = reader.scores.by_match()
    faults = Counter(tries[0].match for tries in group_attempts(reader.violations.read()))
    found = []
    for row in rows:
        if (
            (wanted.model is not None and wanted.model not in row.seats.values())
            or (wanted.item is not None and row.item != wanted.item)
            or (wanted.violations and not faults[row.number])
            or (wanted.aborted and row.state not in BROKEN)
        ):
            continue
        given = scores.get(row.number, {})
        seats = rank_scored_seats(row, roles, metrics, given)
        focus = choose_focus(seats, wanted)
        found.append(ListedMatch(row, seats, given, faults[row.number], focus))
    if wanted.worst is None:
        return found
    rated = [each for each in found if each.focus is not None and each.focus.share is not None]
    return sorted(rated, key=lambda each: rank_seat(each.focus))[: wanted.worst]


def list_scored_seats(
    match: MatchRow,
    roles: Mapping[str, str],
    metrics: Sequence[Metric],
    scores: Mapping[Seat, Mapping[str, float | None]],
) -> list[ListedSeat]:
    """The seats of a match that are scored; `roles`: by name, contestant or instrument."""
    found = []
    for seat, alias in match.seats.items():
        if roles[seat.role] == "contestant" and seat not in match.unscored:
            given, metric = scores.get(seat, {}), choose_ranking_metric(metrics, seat.role)
            unprotected = name_unprotected(metric.name) if metric else ""
            if unprotected in given:
                metric = next(each for each in metrics if each.name == unprotected)
            score = given.get(metric.name) if metric else None
            found.append(ListedSeat(seat, alias, metric, score, unprotected in given))
    return found


def rank_scored_seats(
    match: MatchRow,
    roles: Mapping[str, str],
    metrics: Sequence[Metric],
    scores: Mapping[Seat, Mapping[str, float | None]],
) -> tuple[ListedSeat, ...]:
    """The same seats, the best first."""
    found = list_scored_seats(match, roles, metrics, scores)
    return tuple(sorted(found, key=rank_seat, reverse=True))


def rank_seat(seat: ListedSeat | None) -> tuple[float, float]:
    """Sort key from the worst to the best seat; seats without a score come first."""
    if seat is None or seat.metric is None or seat.score is None:
        return -1.0, 0.0
    # in a very wide range, different scores have one share
    share = -1.0 if seat.share is None else seat.share
    return share, -seat.score if seat.metric.better == "lower" else seat.score


def choose_focus(seats: Sequence[ListedSeat], wanted: MatchFilter) -> ListedSeat | None:
    """The seat in focus: the worst one of the requested model, or the worst of all."""
    if wanted.model is None and wanted.worst is None:
        return None
    own = [seat for seat in seats if wanted.model in (None, seat.alias)]
    scored = [seat for seat in own if seat.share is not None]
    return min(scored or own, key=rank_seat, default=None)


def match_table(found: list[ListedMatch], task: str, several_roles: bool) -> Table:
    """One row per match; empty columns are left out."""

    def name(seat: ListedSeat) -> str:
        role = f" ({seat.seat})" if several_roles else ""
        return f"{seat.alias}{role}"

    columns: list[tuple[str, list[str]]] = [("match", [str(each.row.number) for each in found])]
    if any(each.row.item is not None for each in found):
        columns.append(("item", [each.row.item or "" for each in found]))
    if any(each.row.arm for each in found):
        columns.append(("arm", [each.row.arm or "all" for each in found]))
        columns.append(("stage", [str(each.row.stage) for each in found]))
    if any(each.row.state != "done" for each in found):
        columns.append(("state", [each.row.state for each in found]))
    focused = any(each.focus for each in found)
    if focused:
        columns.append(("model", [name(each.focus) if each.focus else "" for each in found]))
        columns.append(("score", [each.focus.score_text if each.focus else "–" for each in found]))
    others = [
        ", ".join(f"{name(seat)} {seat.score_text}" for seat in each.seats if seat != each.focus)
        for each in found
    ]
    if any(others):
        columns.append(("others" if focused else "scores", others))
    if any(each.violations for each in found):
        columns.append(("violations", [str(each.violations) for each in found]))
    if any(each.row.reason for each in found):
        columns.append(("reason", [each.row.reason or "" for each in found]))
    header = [title for title, _ in columns]
    rows = [[cells[at] for _, cells in columns] for at in range(len(found))]
    metrics = {
        seat.metric.name: seat.metric for each in found for seat in each.seats if seat.metric
    }
    scores = [
        f"{metric.name}{f' ({metric.unit})' if metric.unit else ''}, {metric.better} is better"
        for metric in metrics.values()
    ]
    title = f"{task}: {'; '.join([*scores, plural(len(found), 'match', 'matches')])}"
    return Table(header, rows, left=len(header), title=title)


def match_rows(found: list[ListedMatch]) -> Table:
    """One row for every score of every listed match, unrounded, for machines."""
    header = ["match", "item", "state", "seat", "alias", "metric", "value", "stage", "arm"]
    rows = []
    for each in found:
        row = each.row
        for seat, alias in row.seats.items():
            for metric, value in (each.scores.get(seat) or {"": None}).items():
                shown = "" if value is None else str(value)
                place = [str(row.number), row.item or "", row.state, seat.key, alias]
                rows.append([*place, metric, shown, str(row.stage), row.arm])
    return Table(header, rows)
