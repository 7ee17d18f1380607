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
from parley.store import MatchRow, RunReader

# different prompts that Parley remembers; a run with more of them is not watched any further
MOST_PROMPTS = 50_000


class RepeatNotice:
    """Notifies the user once, while a run is played, that contestants and judges give the same
    replies to the same prompts. Matches that were played before count."""

    def __init__(self, reader: RunReader | None, progress: Progress) -> None:
        self._progress, self._tracker, self._notified = progress, RepeatTracker(), False
        if reader is not None:
            self._add_earlier(reader)

    def _add_earlier(self, reader: RunReader) -> None:
        for match in reader.matches():
            if not self.is_watching:
                break
            if match.has_ended:
                self.add_match(
                    match,
                    [
                        Line(each["sender"], each["audience"], each["content"])
                        for each in reader.messages(match.number)
                        if each["content"] is not None
                    ],
                )

    @property
    def is_watching(self) -> bool:
        """Whether there is still something to find out."""
        tracker = self._tracker
        return not self._notified and not tracker.differs and tracker.prompts < MOST_PROMPTS

    def add_match(self, match: MatchSpec | MatchRow, lines: Iterable[Line]) -> None:
        """Add a match that has ended."""
        seats = {seat.key: (seat.role, alias) for seat, alias in match.seats.items()}
        self._tracker.add(match.block, match.repeat, collect_exchanges(lines, seats))
        if self._tracker.is_deterministic and not self._notified:
            self._notified = True
            self._progress.notify(
                f"{self._tracker.most_plays} repeats of a match had identical prompts and "
                "replies, so these models are deterministic and more repeats add nothing; use "
                f"{WHAT_HELPS} instead"
            )


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
