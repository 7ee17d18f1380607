"""Notices when all models of a run are deterministic, so that repeats add no information."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parley.match.match import Outcome
from parley.match.observers import MatchObserver
from parley.plans import MatchSpec
from parley.rules.pool import Pool, text_of
from parley.runs.progress import Progress
from parley.statistics.identical_repeats import (
    WHAT_HELPS,
    Line,
    RepeatTracker,
    collect_exchanges,
)
from parley.store.reader import RunReader
from parley.store.types import MatchRow

# different prompts that Parley remembers; a run with more of them is not watched any further
MOST_PROMPTS = 50_000


class RepeatNotice:
    """Notifies the user once, while a run is played, that contestants and judges give the same
    replies to the same prompts. `tracker` has the matches that were played before."""

    def __init__(self, tracker: RepeatTracker, progress: Progress) -> None:
        self._progress, self._tracker, self._notified = progress, tracker, False

    @property
    def is_watching(self) -> bool:
        """Whether there is still something to find out."""
        return not self._notified and is_undecided(self._tracker)

    def add_match(self, match: MatchSpec, lines: Iterable[Line]) -> None:
        """Add a match that has ended."""
        add_match(self._tracker, match, lines)
        self.notify_if_found()

    def notify_if_found(self) -> None:
        """Notify the user if the models are deterministic."""
        if self._tracker.is_deterministic and not self._notified:
            self._notified = True
            self._progress.notify(
                f"{self._tracker.most_plays} repeats of a match had identical prompts and "
                "replies, so these models are deterministic and more repeats add nothing; use "
                f"{WHAT_HELPS} instead"
            )


def track_repeats(reader: RunReader) -> RepeatTracker:
    """The matches on record that have ended, as far as they are needed."""
    tracker = RepeatTracker()
    for match in reader.matches.read():
        if tracker.is_deterministic or not is_undecided(tracker):
            break
        if match.has_ended:
            lines = (
                Line(each["sender"], each["audience"], each["content"])
                for each in reader.messages.of(match.number)
                if each["content"] is not None
            )
            add_match(tracker, match, lines)
    return tracker


def is_undecided(tracker: RepeatTracker) -> bool:
    """Whether models may still be deterministic, and there is room for more prompts."""
    return not tracker.differs and tracker.prompts < MOST_PROMPTS


def add_match(tracker: RepeatTracker, match: MatchSpec | MatchRow, lines: Iterable[Line]) -> None:
    seats = {seat.key: (seat.role, alias) for seat, alias in match.seats.items()}
    tracker.add(match.block, match.repeat, collect_exchanges(lines, seats))


class RepeatObserver(MatchObserver):
    """Shows a match that has ended to the notice."""

    __slots__ = ("_notice", "_spec")

    def __init__(self, notice: RepeatNotice, spec: MatchSpec) -> None:
        self._notice, self._spec = notice, spec

    def end(self, pool: Pool, outcome: Outcome | None) -> None:
        if outcome is not None and self._notice.is_watching:
            self._notice.add_match(self._spec, list_lines(pool))


def list_lines(pool: Pool) -> Iterator[Line]:
    """What every seat was shown and said, seat by seat."""
    for seat, conversation in pool.conversations.items():
        for turn in conversation.turns:
            if turn.role == "assistant":
                yield Line(seat.key, (), text_of(turn.content))
            else:
                yield Line(None, (seat.key,), text_of(turn.content))
