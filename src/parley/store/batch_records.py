"""Batches on record: requests that were sent together to the batch interface of a provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from parley.match.protocol import CallPlace

# new: on record, nothing was sent. sending: the provider may have the batch, its id is unknown.
# sent: its id is known. ended: all results were read. dropped: it was never sent.
BatchState: TypeAlias = Literal["new", "sending", "sent", "ended", "dropped"]


class StoredRequest(NamedTuple):
    """One request of a batch: where its reply belongs, and a digest of what was sent."""

    number: int  # in the batch
    place: CallPlace
    body: bytes  # a digest
    usd: float = 0.0  # reserved for it


class Batch(NamedTuple):
    """A batch of one model, as recorded."""

    number: int  # in the run
    uid: str  # marks it at the provider
    alias: str
    state: BatchState
    provider_id: str | None  # what the provider calls it
    requests: int
    began: float  # seconds since 1970


class OpenBatch(NamedTuple):
    """A batch with requests whose replies are not on record."""

    batch: Batch
    requests: Sequence[StoredRequest]
