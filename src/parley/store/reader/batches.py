"""Reads the batches of a run at the batch interfaces of providers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parley.match.protocol import CallPlace
from parley.store.reader.snapshot import Section
from parley.store.tables import BATCH_REQUESTS, BATCHES

if TYPE_CHECKING:
    from parley.store.batch_records import Batch, OpenBatch

OPEN_REQUESTS = (
    f"SELECT {BATCH_REQUESTS.row} FROM batch_requests AS r WHERE failed = 0 "
    "AND batch IN (SELECT number FROM batches WHERE state != 'dropped') "
    "AND NOT EXISTS (SELECT 1 FROM calls AS c WHERE c.match = r.match AND c.round = r.round "
    "AND c.seat = r.seat AND c.attempt = r.attempt) ORDER BY batch, number"
)


class BatchRows(Section):
    """The batches of a run."""

    def read(self) -> list[Batch]:
        """All batches of the run, in the order in which they were sent."""
        from parley.store.batch_records import Batch  # late: few runs have batches

        rows = list(self._snapshot.rows(f"SELECT {BATCHES.row} FROM batches ORDER BY number"))
        for row in rows:
            self._snapshot.check(row, BATCHES.types(), "a batch")
        return [Batch(*row) for row in rows]

    def open(self) -> list[OpenBatch]:
        """The batches with requests that have neither a reply on record nor an error."""
        from parley.store.batch_records import OpenBatch, StoredRequest

        found: dict[int, list[StoredRequest]] = {}
        for row in self._snapshot.rows(OPEN_REQUESTS):
            self._snapshot.check(row, BATCH_REQUESTS.types(), "a request of a batch")
            batch, number, match, round, seat, attempt, body, usd = row
            place = CallPlace(match, round, seat, attempt)
            found.setdefault(batch, []).append(StoredRequest(number, place, body, usd))
        return [
            OpenBatch(batch, found[batch.number]) for batch in self.read() if batch.number in found
        ]

    def at_providers(self) -> list[OpenBatch]:
        """The open batches of an unfinished run that a provider has, or may have, and bills."""
        if self._snapshot.info.state == "done" or not self.read():
            return []
        return [each for each in self.open() if each.batch.state != "new"]
