"""A time limit for requests that do not arrive: uvicorn itself waits for them forever."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 20.0  # how long a request may take to arrive, with its body


class TimedProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose request is not complete in time. An answer may take
    as long as it needs: streams stay open."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_limit()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_limit()

    def connection_lost(self, exc: Exception | None) -> None:
        self._remove_limit()
        super().connection_lost(exc)

    def _set_limit(self) -> None:
        """The limit begins with a request, and ends when all of it is here."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._remove_limit()
        elif self._limit is None:
            self._limit = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _remove_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
