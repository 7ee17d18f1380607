"""Reads the scores of a run."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson

from parley.plans import Marks
from parley.rules.pool import Seat
from parley.store.dialect import ENDED_MATCHES, LARGEST, SMALLEST
from parley.store.reader.snapshot import Section
from parley.store.tables import MATCHES, SCORES
from parley.store.types import Score
from parley.tables import shorten

SCORE = (*SCORES.types("match", "seat", "metric"), *MATCHES.types("block", "unscored"))
ANY_VALUE = (-sys.float_info.max, sys.float_info.max)
# a seat, its alias, whether it is unscored, and the range of its scores in a metric
ScorePlace = tuple[Seat, str, bool, float, float]


class ScoreRows(Section):
    """The scores of a run."""

    @cached_property
    def _ranges(self) -> dict[str, tuple[float, float]]:
        """The range of the scores in each metric."""
        metrics = self._snapshot.info.identity["metrics"]
        return {metric["name"]: (metric["low"], metric["high"]) for metric in metrics}

    def read(self, judge: str = "", metrics: Collection[str] = ()) -> Iterator[Score]:
        """Every score of every match that has ended, by match, seat and metric. `judge`: those
        copied from that run. `metrics`: only scores in these metrics."""
        return self._select(judge, metrics=metrics, ranges=self._ranges)

    def _select(
        self,
        judge: str = "",
        between: tuple[int, int] = (SMALLEST, LARGEST),
        metrics: Collection[str] = (),
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Iterator[Score]:
        """The scores of matches that have ended, by match. With `ranges`, a score outside the range
        of its metric is refused."""
        marks = ", ".join("?" * len(metrics))
        chosen = f"AND {self._dialect.not_indexed}metric IN ({marks}) " if metrics else ""
        rows = self._snapshot.rows(
            "SELECT match, seat, metric, value FROM scores WHERE judge = ? AND match BETWEEN ? "
            f"AND ? {chosen}ORDER BY match, seat, metric",
            judge,
            *between,
            *metrics,
        )
        # side by side with scores: a join would sort all scores, and repeat the seats for each
        matches = self._snapshot.rows(
            "SELECT number, block, seats, unscored FROM matches WHERE number BETWEEN ? AND ? "
            f"AND {self._dialect.not_indexed}{ENDED_MATCHES} ORDER BY number",
            *between,
        )
        seatings: dict[tuple[Any, Any], dict[tuple[Any, Any], ScorePlace]] = {}
        number, block, seats, unscored = SMALLEST - 1, "", "", None
        places: dict[tuple[Any, Any], ScorePlace] = {}  # of the seating, by seat and metric
        for match, key, metric, value in rows:
            while number < match:
                row = next(matches, None)
                if row is None:
                    return
                number, block, seats, unscored = row
                places = seatings.setdefault((seats, unscored), {})
            if number != match:
                continue
            place = places.get((key, metric))
            if place is None or type(block) is not str:
                self._snapshot.check((match, key, metric, block, unscored), SCORE, "a score")
                what = f"a score of match {match}"
                self._check_value(value, "" if judge else metric, what)
                seat, alias = self._snapshot.alias_in(
                    self._snapshot.seating(seats, what), key, what
                )
                low, high = (ranges or {}).get(metric, ANY_VALUE)
                place = (
                    seat,
                    alias,
                    seat in self._snapshot.unscored_seats(unscored, what),
                    low,
                    high,
                )
                places[key, metric] = place
            seat, alias, is_unscored, low, high = place
            if type(value) is not float or not low <= value <= high:
                self._check_score(match, metric, value, (low, high))
            yield Score(match, block, seat, alias, metric, value, is_unscored)

    def _check_score(
        self, match: int, metric: str, value: Any, bounds: tuple[float, float]
    ) -> None:
        """Refuse a score that is not a number, or is out of its range."""
        self._check_value(value, "", f"a score of match {match}")
        low, high = bounds
        if value is not None and not low <= value <= high:
            self._snapshot.refuse(
                f"a score of match {match} is {value:g}, but {metric} must be {low:g} to {high:g}"
            )

    def _check_value(self, value: Any, metric: str, what: str) -> None:
        if not (value is None or (isinstance(value, float | int) and math.isfinite(value))):
            self._snapshot.refuse(f"{what} must be a number, not {shorten(value)}")
        if metric and metric not in self._ranges:
            self._snapshot.refuse(
                f"{what} is for `{shorten(metric)}`, which is not a metric of this task"
            )

    def of(self, number: int) -> dict[Seat, dict[str, float | None]]:
        """The scores of one match, by seat and metric, also if it has not ended."""
        return self.of_matches([number])[number]

    def of_matches(self, numbers: Sequence[int]) -> dict[int, dict[Seat, dict[str, float | None]]]:
        """The same for each of these matches."""
        rows = self._snapshot.rows(
            f"SELECT s.match, s.seat, s.metric, s.value FROM {self._dialect.chosen} CROSS JOIN "
            f"scores s WHERE s.match = chosen.value AND {self._dialect.not_indexed}s.judge = '' "
            "ORDER BY s.match, s.seat, s.metric",
            orjson.dumps(list(numbers)).decode(),
        )
        found = {number: self.decode(group) for number, group in groupby(rows, itemgetter(0))}
        return {number: found.get(number, {}) for number in numbers}

    def decode(self, rows: Iterable[Sequence[Any]]) -> dict[Seat, dict[str, float | None]]:
        """The scores of one match, by seat and metric."""
        found: dict[Seat, dict[str, float | None]] = {}
        for number, key, metric, value in rows:
            what = f"a score of match {number}"
            self._check_value(value, metric, what)
            found.setdefault(self._snapshot.seat(key, what), {})[metric] = value
        return found

    def by_match(self, first: int = SMALLEST, last: int = LARGEST) -> dict[int, Marks]:
        """The scores of every match that has ended, by match; or of those numbered `first` to
        `last`."""
        ended = self._snapshot.rows(
            f"SELECT number FROM matches WHERE number BETWEEN ? AND ? AND {ENDED_MATCHES} "
            "ORDER BY number",
            first,
            last,
        )
        table: dict[int, dict[Seat, dict[str, float | None]]] = {number: {} for (number,) in ended}
        # out-of-range scores are left to the audit
        for score in self._select(between=(first, last)):
            table[score.match].setdefault(score.seat, {})[score.metric] = score.value
        return dict(table)

    def orphans(self) -> list[int]:
        """Numbers of matches that have scores but are not on record."""
        rows = self._snapshot.rows(
            "SELECT DISTINCT match FROM scores WHERE match NOT IN (SELECT number FROM matches) "
            "ORDER BY match"
        )
        return [match for (match,) in rows]
