"""How fast a model may be asked: so many at a time, so many requests and tokens a minute."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from parley.pool import View, text_of
from parley.providers.patience import patient
from parley.providers.protocol import Reply

MINUTE = 60.0


@dataclass(frozen=True)
class Limits:
    """What a user allows for one model; None where nothing was said."""

    concurrency: int | None = None
    rpm: int | None = None  # requests a minute
    tpm: int | None = None  # tokens a minute, both ways

    @property
    def any(self) -> bool:
        return (self.concurrency or self.rpm or self.tpm) is not None


class Bucket:
    """Fills at an even rate and holds what a few seconds bring; who takes more than there is waits for it."""

    def __init__(self, a_minute: float) -> None:
        self.rate = a_minute / MINUTE
        self.most = max(1.0, self.rate * 5)
        self.level, self._at = self.most, time.monotonic()

    def taken(self, amount: float) -> float:
        """Take an amount; how many seconds to wait until it is there."""
        now = time.monotonic()
        self.level = min(self.most, self.level + (now - self._at) * self.rate) - amount
        self._at = now
        return max(0.0, -self.level / self.rate)


class Pace:
    """The limits of one model, kept over all its calls."""

    def __init__(self, limits: Limits) -> None:
        self.places = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._requests = Bucket(limits.rpm) if limits.rpm else None
        self._tokens = Bucket(limits.tpm) if limits.tpm else None
        self._reply = 0.0  # tokens of a reply, as far as they are known

    async def admit(self, view: View) -> float:
        """Wait for this call's turn; what it was supposed to take in tokens."""
        supposed = sum(len(text_of(turn.content)) for turn in view.turns) / 4 + self._reply if self._tokens else 0.0
        waits = [self._requests.taken(1) if self._requests else 0.0, self._tokens.taken(supposed) if self._tokens else 0.0]
        if max(waits) > 0:
            await patient(max(waits))
        return supposed

    def came(self, supposed: float, reply: Reply | str) -> None:
        """Put right what was supposed, once the endpoint has counted."""
        if self._tokens is None or isinstance(reply, str):
            return
        into, out = reply.usage.tokens_in, reply.usage.tokens_out
        if into is not None and out is not None:
            self._reply = max(self._reply * 0.9, float(out))
            self._tokens.taken(into + out - supposed)
