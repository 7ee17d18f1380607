"""The progress of a run, and the signal to stop it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from parley.errors import Halted
from parley.match.match import Outcome
from parley.match.observers import MatchObserver
from parley.providers._secrets import redact
from parley.rules.pool import Pool

EventKind: TypeAlias = Literal["started", "match_done", "match_failed", "notice", "ended"]

SANDBOX = "the sandbox"  # the name shown while programs run


@dataclass(frozen=True)
class ProgressEvent:
    """Something that happened in a run, for a callback that watches it.

    `planned` counts the matches that are planned so far: some plans add to it. `calls` counts the
    replies so far.
    """

    kind: EventKind
    done: int
    failed: int
    planned: int
    calls: int
    path: str  # the run's file
    match: int | None = None  # of match_done and match_failed
    text: str = ""  # a notice, or why a match failed or the run ended


@dataclass
class BatchProgress:
    """A batch that the run waits for."""

    number: int
    alias: str
    done: int
    total: int
    since: float  # seconds since 1970


@dataclass
class Progress:
    """The progress of a run, for whatever displays it."""

    planned: int = 0  # 0: not known
    done: int = 0
    failed: int = 0
    in_flight: int = 0
    calls: int = 0
    # before this process began to play: finished matches, and calls of a screening
    done_before: int = 0
    calls_before: int = 0
    calls_per_match: float | None = None  # estimated with stand-ins
    estimates_calls: bool = False  # whether to estimate it
    location: str = ""  # the run's file, once there is one
    status_line: str = ""  # the plan's own description of its progress
    activity: str = ""  # other work in progress, such as a download
    began: float = field(default_factory=time.monotonic)
    notices: list[str] = field(default_factory=list)
    # by alias, or for the sandbox: when the calls in progress began
    waiting: dict[str, dict[int, float]] = field(default_factory=dict)
    # by alias: seats that are asked and have not answered yet, also between two attempts
    seats_asked: Counter[str] = field(default_factory=Counter)
    batches: dict[int, BatchProgress] = field(default_factory=dict)  # by number
    people: dict[str, str] = field(default_factory=dict)  # by alias: the link of a person
    on_event: Callable[[ProgressEvent], None] | None = None
    # what the callback raised: it is not called again, the run stops, and its caller raises this
    failure: Exception | None = None
    on_failure: Callable[[Exception], None] = lambda fault: None
    _notified: set[str] = field(default_factory=set)

    def begin(self, finished: int) -> None:
        """Begin to play a run that has some finished matches."""
        self.done = self.done_before = finished
        self.calls_before, self.began = self.calls, time.monotonic()

    @property
    def expected_calls(self) -> float | None:
        """How many calls the whole run will make; None if unknown.

        The forecast for a match weighs as much as one match that was played. Real matches outweigh
        it: finished ones, and half of each one in flight. Every call in progress and every match
        that has not begun adds at least one more.
        """
        if not self.planned:
            return None
        finished, matches = self.done - self.done_before, self.planned - self.done_before
        made, played = self.calls - self.calls_before, finished + self.in_flight / 2
        known = [(self.calls_per_match, 1.0)] if self.calls_per_match is not None else []
        known += [(made / played, played)] if finished else []
        if not known:
            return None
        per_match = sum(each * share for each, share in known) / sum(share for _, share in known)
        in_progress = sum(len(calls) for who, calls in self.waiting.items() if who != SANDBOX)
        least = made + in_progress + max(0, matches - finished - self.in_flight)
        return self.calls_before + max(float(least), per_match * matches)

    def seconds_left(self) -> float | None:
        """How long the rest will take at the pace so far; None if unknown."""
        expected, made = self.expected_calls, self.calls - self.calls_before
        if expected is None or not made:
            return None
        return (expected - self.calls) * (time.monotonic() - self.began) / made

    def notify(self, text: str) -> None:
        """Show a notice to the user: to the callback if there is one, else in the list that a
        display empties. Each text is shown once, with API keys masked."""
        if not (text := redact(text)) or text in self._notified:
            return
        self._notified.add(text)
        if self.on_event is None:
            self.notices.append(text)
        else:
            self.emit("notice", text=text)

    def emit(self, kind: EventKind, match: int | None = None, text: str = "") -> None:
        """Call the callback, if there is one. It never raises here, where a match is played or
        a record is written: what it raises is kept in `failure`."""
        if self.on_event is None or self.failure is not None:
            return
        counts = (self.done, self.failed, self.planned, self.calls)
        try:
            self.on_event(ProgressEvent(kind, *counts, self.location, match, redact(text)))
        except Exception as fault:
            self.failure = fault
            self.on_failure(fault)

    @property
    def waits_only_for_batches(self) -> bool:
        """Whether every call in progress belongs to a model with a batch at its provider."""
        batched = {batch.alias for batch in self.batches.values()}
        return bool(batched) and all(
            alias in batched for alias, since in self.waiting.items() if since
        )

    def slowest(self) -> tuple[str, float] | None:
        """The alias with the oldest call in progress, and the age of that call in seconds."""
        began = [(min(since.values()), alias) for alias, since in self.waiting.items() if since]
        return (min(began)[1], time.monotonic() - min(began)[0]) if began else None


class ProgressObserver(MatchObserver):
    """Counts a match that is being played."""

    __slots__ = ("_progress",)

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def begin(self) -> None:
        self._progress.in_flight += 1

    def end(self, pool: Pool, outcome: Outcome | None) -> None:
        self._progress.in_flight -= 1


class StopSignal:
    """Stops a run gently: calls in progress finish and are recorded, no new ones begin."""

    def __init__(self) -> None:
        self.reason, self.status = "", "interrupted"
        self.limit = ""  # the option whose limit was reached
        self.needed = 0.0  # how much of it the next request needs

    def stop(
        self, reason: str, status: str = "interrupted", limit: str = "", needed: float = 0.0
    ) -> Halted:
        """Stop the run. If it is stopping already, the first reason stays."""
        if not self.reason:
            self.reason, self.status, self.limit, self.needed = reason, status, limit, needed
        return Halted(reason, limit=limit, needed=needed)

    def check(self) -> None:
        """Raise `Halted` if the run is stopping."""
        if self.reason:
            raise Halted(self.reason, limit=self.limit, needed=self.needed)
