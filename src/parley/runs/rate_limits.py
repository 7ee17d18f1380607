"""The rate limits that a user sets for a model: `concurrency`, `rpm` and `tpm`.

What happens when an endpoint itself answers 429 is in `parley.providers._endpoint_health`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager, nullcontext

from parley.match.protocol import Call, Reply
from parley.participants._registry import ModelLimits
from parley.providers._endpoint_health import sleep_unless_stopped
from parley.rules.pool import View, text_of
from parley.runs.shared_rates import SharedBucket, SharedSlots
from parley.store.shared_limits import Grants

MINUTE = 60.0
NO_LIMIT = nullcontext()


class Bucket:
    """A token bucket. It fills at an even rate and holds as much as one second adds, at least 1."""

    def __init__(self, a_minute: float) -> None:
        self.rate = a_minute / MINUTE
        self.most = max(1.0, a_minute / 60)
        self.level, self._at = self.most, time.monotonic()

    def seconds_until(self, amount: float) -> float:
        """How many seconds until an amount may be taken. An amount larger than the bucket is taken
        when the bucket is full; its level then goes below zero."""
        now = time.monotonic()
        self.level = min(self.most, self.level + (now - self._at) * self.rate)
        self._at = now
        return max(0.0, (min(amount, self.most) - self.level) / self.rate)

    def take(self, amount: float) -> None:
        """Take an amount, at most what one minute adds: an endpoint that miscounts tokens must not
        block a model for ever."""
        self.level -= min(amount, self.rate * MINUTE)

    correct = take  # an amount may be more, or less, than was estimated


class RateLimiter:
    """Keeps all requests to one model within its limits."""

    def __init__(self, limits: ModelLimits, alias: str = "", grants: Grants | None = None) -> None:
        """`grants`: of a worker that shares the limits with others, under the model's alias."""
        self._slots: asyncio.Semaphore | None = None
        self._requests: Bucket | SharedBucket | None = None
        self._tokens: Bucket | SharedBucket | None = None
        self._shared_slots: SharedSlots | None = None
        if grants is None:
            self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
            self._requests = Bucket(limits.rpm) if limits.rpm else None
            self._tokens = Bucket(limits.tpm) if limits.tpm else None
        else:
            if limits.concurrency:
                self._shared_slots = SharedSlots(limits.concurrency, f"slots {alias}", grants)
            if limits.rpm:
                self._requests = SharedBucket(limits.rpm, f"rpm {alias}", grants)
            if limits.tpm:
                self._tokens = SharedBucket(limits.tpm, f"tpm {alias}", grants)
        self._reply = 0.0  # tokens of a reply, estimated from earlier ones
        # the first caller waits for time to pass, the others wait for the first
        self._queue = asyncio.Lock()
        self._waiting = 0  # callers, the first one included

    def slot(self, call: Call) -> AbstractAsyncContextManager[object]:
        """One of the calls that may be in progress at a time: to be held during the call."""
        if self._shared_slots is not None:
            return self._shared_slots.slot(call)
        return self._slots or NO_LIMIT

    def estimate_tokens(self, view: View) -> float:
        """Estimate the tokens of a request and its reply before it is sent."""
        return (
            sum(len(text_of(turn.content)) for turn in view.turns) / 4 + self._reply
            if self._tokens
            else 0.0
        )

    async def acquire(self, tokens: float, call: Call) -> None:
        """Wait until one more request with this many tokens may be sent; first come, first
        served."""
        if self._requests is None and self._tokens is None:
            return
        wanted = [
            (bucket, amount)
            for bucket, amount in ((self._requests, 1.0), (self._tokens, tokens))
            if bucket
        ]
        self._waiting += 1
        try:
            async with self._queue:
                for bucket, amount in wanted:
                    if isinstance(bucket, SharedBucket):
                        await bucket.reserve(amount, self._waiting)
                while (wait := max(bucket.seconds_until(amount) for bucket, amount in wanted)) > 0:
                    await sleep_unless_stopped(wait, call)
                for bucket, amount in wanted:
                    bucket.take(amount)
        finally:
            self._waiting -= 1

    def correct(self, estimate: float, reply: Reply | str) -> None:
        """Replace an estimate by the tokens that the endpoint counted."""
        if self._tokens is None or isinstance(reply, str):
            return
        into, out = reply.usage.tokens_in, reply.usage.tokens_out
        if into is not None and out is not None:
            self._reply = max(self._reply * 0.9, float(out))
            self._tokens.correct(into + out - estimate)

    async def close(self) -> None:
        if self._shared_slots is not None:
            await self._shared_slots.close()
