"""Tells the desk what happens in a match of the people who play in a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from parley.match.match import Outcome
from parley.match.observers import MatchObserver
from parley.match.record import RecordedCall
from parley.match.seating import seat_counts
from parley.rules.pool import Pool, Seat
from parley.rules.task import Metric, Task
from parley.runs.progress import Progress
from parley.tables import format_number

if TYPE_CHECKING:
    from parley.participants._desk import Desk


class DeskObserver(MatchObserver):
    """Confirms each answer to the desk once it is on record, and shows how the match ended."""

    __slots__ = ("_desk", "_progress", "_seats", "_task")

    def __init__(
        self, desk: Desk, progress: Progress, task: Task, seats: Mapping[Seat, str]
    ) -> None:
        self._desk, self._progress, self._task, self._seats = desk, progress, task, seats

    def begin(self) -> None:
        self._desk.begin_match(self._progress.done + 1, self._progress.planned, self._seats)

    def reply(self, call: RecordedCall) -> None:
        self._desk.confirm(self._seats[call.seat], (call.seat, call.round, call.attempt))

    def end(self, pool: Pool, outcome: Outcome | None) -> None:
        self._desk.end_match(find_last_words(pool, self._seats))
        if outcome is not None:
            metrics = self._task.metrics(seat_counts(self._seats, self._task))
            self._desk.add_scores(describe_scores(outcome, self._seats, metrics))


def find_last_words(pool: Pool, seats: Mapping[Seat, str]) -> dict[str, str]:
    """By alias, what was said to its seats after their last answer."""
    found: dict[str, list[str]] = {}
    for seat, alias in seats.items():
        found.setdefault(alias, []).extend(pool.conversations[seat].waiting)
    return {alias: "\n\n".join(filter(None, words)) for alias, words in found.items()}


def describe_scores(
    outcome: Outcome, seats: Mapping[Seat, str], metrics: Sequence[Metric]
) -> dict[str, str]:
    """By alias, the scores of its own seats in words. Scores of single rounds are left out."""
    found: dict[str, list[str]] = {}
    for seat, alias in seats.items():
        scores = outcome.scores.get(seat, {})
        for metric in metrics:
            value = scores.get(metric.name)
            if value is not None and metric.round is None:
                words = [metric.name.replace("_", " "), format_number(value, metric.digits)]
                found.setdefault(alias, []).append(" ".join(filter(None, [*words, metric.unit])))
    return {alias: ", ".join(each) for alias, each in found.items()}
