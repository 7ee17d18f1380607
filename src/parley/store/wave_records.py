"""Waves on record: requests that were sent together to the batch interface of a provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from parley.match.protocol import CallPlace

# new: on record, nothing was sent. sending: the provider may have the batch, its id is unknown.
# sent: its id is known. ended: all results were read. dropped: it was never sent.
WaveState: TypeAlias = Literal["new", "sending", "sent", "ended", "dropped"]


class WaveRequest(NamedTuple):
    """One request of a wave: where its reply belongs, and a digest of what was sent."""

    number: int  # in the wave
    place: CallPlace
    body: bytes  # a digest
    usd: float = 0.0  # reserved for it


class Wave(NamedTuple):
    """A wave of one model, as recorded."""

    number: int  # in the run
    uid: str  # marks the batch at the provider
    alias: str
    state: WaveState
    batch: str | None  # the provider's id
    requests: int
    began: float  # seconds since 1970


class OpenWave(NamedTuple):
    """A wave with requests whose replies are not on record."""

    wave: Wave
    requests: Sequence[WaveRequest]
