"""Estimates how large a request and its reply can be, from the replies of a model so far."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import orjson

from parley.config.prepare import LONGEST_REPLY, REQUEST, SHORTEST_REPLY, TURN
from parley.match.protocol import Reply
from parley.rules.pool import View

ENOUGH_REPLIES = 8  # after this many, the longest one predicts the next
# how much longer a reply may be than the longest so far if max_tokens sets no limit
LONGER = 4
# how many more tokens a byte may give than the most so far, for endpoints that count more than one
DENSER = 2
MOST_COUNTED = 20_000  # conversations of a model whose tokens are remembered


class RequestSize(NamedTuple):
    """A request: its bytes, the digest of its conversation, and upper limits of its tokens."""

    size: int
    mark: bytes
    into: float
    out: float


@dataclass
class RequestEstimator:
    """Estimates the most that the next request to a model can take, and learns from each reply."""

    limit: int | None = None  # max_tokens
    extra: int = 0  # bytes that every request has besides its view
    dense: float = 0.0  # the most tokens that a byte gave
    # tokens of conversations that were sent, by digest
    counted: dict[bytes, int] = field(default_factory=dict)
    longest: int = 0
    replies: int = 0
    # until the first call is answered, the others wait: it shows how the endpoint counts tokens
    first: asyncio.Lock = field(default_factory=asyncio.Lock)

    def estimate(self, view: View) -> RequestSize:
        """The size of a request, and upper limits of its tokens and those of its reply.

        The part of the conversation that the endpoint has counted before has those tokens. Each new
        byte may be a token.
        """
        shown = (
            [
                text.encode()
                for example in view.examples[1]
                for text in (example.question, example.answer)
            ]
            if view.examples is not None
            else []
        )
        form = 0 if view.schema is None else len(orjson.dumps(view.schema))
        size = fresh = self.extra + sum(map(len, shown))
        mark, known, turns = blake2b(b"".join(shown), digest_size=16), 0, 0
        for turn in view.turns:
            encoded = turn.canonical()
            mark.update(encoded)
            size, fresh, turns = size + len(encoded), fresh + len(encoded), turns + 1
            if (found := self.counted.get(mark.digest())) is not None:
                known, fresh, turns = found, 0, 0
        # No usual tokenizer makes more than one token of a byte.
        into = (
            known
            + (fresh + form) * (self.dense * DENSER if self.dense > 1 else 1.0)
            + TURN * turns
            + REQUEST
        )
        least = SHORTEST_REPLY if self.replies >= ENOUGH_REPLIES and self.longest else LONGEST_REPLY
        out = max(self.limit, self.longest) if self.limit else max(least, LONGER * self.longest)
        return RequestSize(size + form, mark.digest(), into, out)

    def update(self, size: int, mark: bytes, reply: Reply) -> None:
        """Learn from a reply to a request of this size and conversation."""
        into, out = reply.usage.tokens_in, reply.usage.tokens_out or 0
        self.dense, self.longest = max(self.dense, (into or 0) / size), max(self.longest, out)
        self.replies += 1
        if into is not None:
            if len(self.counted) >= MOST_COUNTED:
                del self.counted[next(iter(self.counted))]
            # The provider's state goes back with the next request and is in no view: it has at most
            # the tokens of the reply.
            self.counted[mark] = into + (0 if reply.provider_state is None else out)
