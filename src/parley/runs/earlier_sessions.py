"""What earlier sessions of a run have left on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parley.config.prepare import Prepared
from parley.runs.budget import find_spent
from parley.runs.repeat_notice import track_repeats
from parley.statistics.identical_repeats import RepeatTracker
from parley.store.number_set import NumberSet
from parley.store.reader import RunReader
from parley.store.shared_runs import SpentBefore
from parley.store.types import EndpointRecord

if TYPE_CHECKING:
    from parley.store.batch_records import Batch, OpenBatch

NOTHING = SpentBefore()


@dataclass(frozen=True)
class EarlierSessions:
    """Read once, before a session begins: a record that is open for reading while it is written
    grows. Only the secret is there before the first session; a worker counts only what it does
    itself."""

    quotation_secret: str = field(repr=False)
    spent: SpentBefore = NOTHING  # what counts against the limits of the run
    calls: int = 0
    replies: int = 0
    unanswered: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    health: Mapping[str, EndpointRecord] = field(default_factory=dict)
    batches: Sequence[Batch] = ()
    open_batches: Sequence[OpenBatch] = ()
    ended: NumberSet = field(default_factory=NumberSet)  # matches
    repeats: RepeatTracker = field(default_factory=RepeatTracker)

    @classmethod
    def read(cls, reader: RunReader, prepared: Prepared) -> EarlierSessions:
        """What is on record of a run that is resumed."""
        return cls(
            reader.run.quotation_secret(),
            find_spent(prepared, reader),
            reader.run.spent_at_most()[0],
            reader.calls.count(),
            reader.run.unanswered(),
            reader.run.endpoint_health(),
            reader.batches.read(),
            reader.batches.open(),
            NumberSet(reader.matches.ended()),
            track_repeats(reader),
        )
