"""Notices when all models of a run are deterministic, so that repeats add no information."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any

from parley.match.record import Record, RecordedCall
from parley.plans import MatchSpec
from parley.rules.pool import Message, Seat, text_of
from parley.runs.progress import Progress
from parley.statistics.identical_repeats import (
    WHAT_HELPS,
    Line,
    RepeatTracker,
    collect_exchanges,
)
from parley.store import MatchRow
from parley.store.reader import RunReader

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


class WatchedRecord:
    """A match's record that passes everything on and keeps what was said."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._replies: dict[tuple[int, Seat, int], str] = {}
        self.lines: list[Line] = []

    def _keep(self, call: RecordedCall) -> None:
        self._replies[call.round, call.seat, call.attempt] = text_of(call.reply.content)

    def call(self, round: int, seat: Seat, attempt: int) -> RecordedCall | None:
        kept = self._record.call(round, seat, attempt)
        if kept is not None:
            self._keep(kept)
        return kept

    def append(self, call: RecordedCall) -> Awaitable[None]:
        self._keep(call)
        return self._record.append(call)

    def effect(self, round: int, number: int) -> tuple[bytes, Any] | None:
        return self._record.effect(round, number)

    async def append_effect(
        self, round: int, number: int, request_digest: bytes, result: Any
    ) -> None:
        await self._record.append_effect(round, number, request_digest, result)

    def circulate(self, messages: list[Message], first: int) -> None:
        for each in messages:
            if each.kind == "reply" and each.sender is not None:
                text = self._replies.pop((each.round, each.sender, each.attempt))
                self.lines.append(Line(each.sender.key, (), text))
            elif each.content is not None:
                audience = [seat.key for seat in each.audience]
                self.lines.append(Line(None, audience, text_of(each.content)))
        self._record.circulate(messages, first)
