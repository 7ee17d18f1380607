"""How fast a model may be asked: so many at a time, so many requests and tokens a minute."""

from __future__ import annotations

import asyncio
import time

from parley.match.protocol import Call, Reply
from parley.participants._registry import Limits
from parley.providers._backoff import patient
from parley.rules.pool import View, text_of

MINUTE = 60.0


class Bucket:
    """Fills at an even rate and holds what a second brings, at least one: so much may leave at
    once, and in no minute more than the rate and that."""

    def __init__(self, a_minute: float) -> None:
        self.rate = a_minute / MINUTE
        self.most = max(1.0, a_minute / 60)
        self.level, self._at = self.most, time.monotonic()

    def lacks(self, amount: float) -> float:
        """In how many seconds an amount may be taken. One that it never holds is taken when it is
        full, and made up for after."""
        now = time.monotonic()
        self.level = min(self.most, self.level + (now - self._at) * self.rate)
        self._at = now
        return max(0.0, (min(amount, self.most) - self.level) / self.rate)

    def take(self, amount: float) -> None:
        """Take an amount, and of one alone no more than a minute brings: an endpoint that counts
        wrong stops nobody for ever."""
        self.level -= min(amount, self.rate * MINUTE)


class Pace:
    """The limits of one model, kept over all requests of all its calls."""

    def __init__(self, limits: Limits) -> None:
        self.places = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._requests = Bucket(limits.rpm) if limits.rpm else None
        self._tokens = Bucket(limits.tpm) if limits.tpm else None
        self._reply = 0.0  # tokens of a reply, as far as they are known
        # its first one waits for time to pass, the others for the first one
        self._line = asyncio.Lock()

    def supposed(self, view: View) -> float:
        """The tokens that a request will take, as far as that can be known before."""
        return (
            sum(len(text_of(turn.content)) for turn in view.turns) / 4 + self._reply
            if self._tokens
            else 0.0
        )

    async def turn(self, tokens: float, call: Call) -> None:
        """Wait until one more request of so many tokens may leave; first come, first served."""
        wanted = [
            (bucket, amount)
            for bucket, amount in ((self._requests, 1.0), (self._tokens, tokens))
            if bucket
        ]
        if not wanted:
            return
        async with self._line:
            while (wait := max(bucket.lacks(amount) for bucket, amount in wanted)) > 0:
                await patient(wait, call)
            for bucket, amount in wanted:
                bucket.take(amount)

    def came(self, supposed: float, reply: Reply | str) -> None:
        """Put right what was supposed, once the endpoint has counted."""
        if self._tokens is None or isinstance(reply, str):
            return
        into, out = reply.usage.tokens_in, reply.usage.tokens_out
        if into is not None and out is not None:
            self._reply = max(self._reply * 0.9, float(out))
            self._tokens.take(into + out - supposed)
