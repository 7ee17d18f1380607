"""The scores of one match: by seat, as a table, and by round as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parley.results.types import Lines, Series
from parley.rules.pool import Seat
from parley.rules.task import Metric
from parley.store.types import MatchRow, WholeMatch
from parley.tables import Table, format_number

UNSCORED = "fills a seat; unscored"
WIDEST_RANGE = 1e9  # of a metric whose bounds say something


@dataclass(frozen=True)
class SeatScores:
    """The scores of a seat."""

    seat: str
    alias: str
    remark: str  # empty, or that its scores do not count
    values: Mapping[str, str]  # by metric, as far as the seat has them


@dataclass(frozen=True)
class MatchScores:
    """The scores of a match, the best seat of each role first."""

    metrics: tuple[str, ...] = ()  # with their units
    seats: tuple[SeatScores, ...] = ()

    def table(self) -> Table:
        """One row for each seat."""
        rows = [
            [
                each.seat,
                f"{each.alias} ({each.remark})" if each.remark else each.alias,
                *(each.values.get(name, format_number(None)) for name in self.metrics),
            ]
            for each in self.seats
        ]
        return Table(["seat", "model", *self.metrics], rows, left=2)


def describe_scores(
    whole: WholeMatch, metrics: Sequence[Metric], best: Sequence[Seat]
) -> tuple[MatchScores, Lines | None]:
    """The scores of a match, and the figure of those that follow a quantity from round to round.
    `best`: the seats that are scored, the best first."""
    match, scores = whole.match, whole.scores
    given = [each for each in metrics if any(each.name in by for by in scores.values())]
    if not given:
        return MatchScores(), None
    by_rank = [*best, *(seat for seat in scores if seat not in best)]
    ordered = {
        seat: scores[seat]
        for role in dict.fromkeys(seat.role for seat in match.seats)
        for seat in by_rank
        if seat.role == role and seat in scores
    }
    names = {each: f"{each.name} ({each.unit})" if each.unit else each.name for each in given}
    seats = tuple(
        SeatScores(
            str(seat),
            match.seats[seat],
            UNSCORED if seat in match.unscored else "",
            {
                name: format_number(by[each.name], each.digits)
                for each, name in names.items()
                if each.name in by
            },
        )
        for seat, by in ordered.items()
    )
    return MatchScores(tuple(names.values()), seats), follow_rounds(match, given, ordered)


def follow_rounds(
    match: MatchRow,
    metrics: Sequence[Metric],
    scores: Mapping[Seat, Mapping[str, float | None]],
) -> Lines | None:
    """Scores after each round, if the task has such metrics; None if no seat has two of them."""
    followed = sorted((each for each in metrics if each.round), key=lambda each: each.round or 0)
    series, told = list[Series](), list[str]()
    for seat, by in scores.items():
        points = [(each, value) for each in followed if (value := by.get(each.name)) is not None]
        if len(points) > 1:
            rounds = tuple(float(each.round or 0) for each, _ in points)
            values = tuple(value for _, value in points)
            series.append(Series(str(seat), rounds, values, model=match.seats[seat]))
            numbers = ", ".join(
                f"round {each.round}: {format_number(value, each.digits)}" for each, value in points
            )
            told.append(f"{seat}: {numbers}")
    if not series:
        return None
    last = followed[-1]
    return Lines(
        "Scores by round",
        f"{'; '.join(told)}.",
        "round",
        f"{last.name} ({last.unit})" if last.unit else last.name,
        tuple(series),
        y_bounds=(last.low, last.high) if 0 < last.high - last.low < WIDEST_RANGE else (),
    )
