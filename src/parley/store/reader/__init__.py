"""Reads a run: one class for each thing that a run has."""

from __future__ import annotations

from typing import Self

from parley.store.reader.batches import BatchRows
from parley.store.reader.calls import CallRows, EffectRows
from parley.store.reader.matches import MatchRows
from parley.store.reader.messages import MessageRows
from parley.store.reader.people import ExperienceRows, PeopleRows
from parley.store.reader.run import RunRows
from parley.store.reader.scores import ScoreRows
from parley.store.reader.snapshot import Snapshot
from parley.store.reader.usage import UsageRows
from parley.store.reader.violations import NoteRows, ViolationRows
from parley.store.reader.whole_matches import WholeMatches


class RunReader:
    """Reads one run from a snapshot, which a store opens. Use it as a context manager."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.info = snapshot, snapshot.info
        self.matches = MatchRows(snapshot)
        self.violations, self.notes = ViolationRows(snapshot), NoteRows(snapshot)
        self.calls, self.effects = CallRows(snapshot), EffectRows(snapshot)
        self.messages = MessageRows(snapshot, self.matches, self.calls, self.violations)
        self.scores, self.usage = ScoreRows(snapshot), UsageRows(snapshot)
        self.people, self.experiences = PeopleRows(snapshot), ExperienceRows(snapshot)
        self.batches = BatchRows(snapshot)
        self.run = RunRows(snapshot, self.calls)
        self.whole_matches = WholeMatches(
            snapshot,
            self.matches,
            self.calls,
            self.messages,
            self.effects,
            self.scores,
            self.violations,
            self.notes,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.snapshot.close()
