"""A connection that reads plain answers itself: a head of a usual form, and a body of known length.

Most servers answer so. aiohttp's parser, streams and timers would take longer for such an answer
than sending the request. All other answers are handed over to aiohttp: chunked or compressed ones,
those with cookies or after which the connection closes, and those that are broken.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from time import monotonic
from typing import NamedTuple

from aiohttp.connector import Connection
from multidict import CIMultiDict, CIMultiDictProxy

LARGEST = 16 * 2**20  # bytes of one answer
LONGEST_HEAD = 8000  # bytes
# Seconds that an idle connection is kept. Most servers close theirs after 5: if that crosses a
# request, it is unknown whether the request is billed.
KEEPALIVE = 4.0
HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5]\d\d)(?: [\t\x20-\x7e]*)?\r\n((?:[A-Za-z0-9-]+:[\t\x20-\x7e]*\r\n)+)\r\n"
)
WITHOUT_BODY = (204, 205, 304)
UNUSUAL = ("Transfer-Encoding", "Content-Encoding", "Set-Cookie", "Upgrade", "Trailer")


class WholeAnswer(NamedTuple):
    """An answer that has arrived."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class PlainHead(NamedTuple):
    """The head of a plain answer."""

    status: int
    headers: Mapping[str, str]
    length: int  # bytes of the body


@lru_cache(maxsize=64)  # the heads of many answers are the same
def parse_plain_head(head: bytes) -> PlainHead | None:
    """Parse the head of an answer; None if aiohttp has to do this."""
    if (found := HEAD.fullmatch(head)) is None:
        return None
    headers: CIMultiDict[str] = CIMultiDict()
    for line in found[2].decode("ascii").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        headers.add(name, value.strip(" \t"))
    lengths, status = headers.getall("Content-Length", []), int(found[1])
    if (
        status in WITHOUT_BODY
        or len(lengths) != 1
        or not re.fullmatch("[0-9]{1,8}", lengths[0])
        or int(lengths[0]) > LARGEST
        or any(name in headers for name in UNUSUAL)
        or any(value.lower() != "keep-alive" for value in headers.getall("Connection", []))
    ):
        return None
    return PlainHead(status, CIMultiDictProxy(headers), int(lengths[0]))


class PostConnection(asyncio.Protocol):
    """A connection that carries one request at a time."""

    __slots__ = (
        "_ends",
        "_handler",
        "_has_expired",
        "_head",
        "_is_fit",
        "_loop",
        "_missing",
        "_parts",
        "_timer",
        "_timer_ends",
        "_transport",
        "_waiter",
        "connection",
        "idle_since",
    )

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Take over a connection of aiohttp on which no answer is expected."""
        assert connection.protocol is not None
        assert connection.transport is not None
        self.connection, self._loop, self.idle_since = connection, loop, 0.0
        self._handler, self._transport = connection.protocol, connection.transport
        self._waiter: asyncio.Future[WholeAnswer | None] | None = None
        self._head: PlainHead | None = None
        self._parts: list[bytes] = []  # of an answer that is not complete
        self._missing = 0  # bytes of its body
        self._is_fit, self._has_expired = True, False
        self._ends = self._timer_ends = 0.0  # of the present request, and of the timer
        self._timer: asyncio.TimerHandle | None = None
        self._transport.set_protocol(self)

    @property
    def is_fit(self) -> bool:
        """Whether another request can be sent. If something has arrived since the last answer, it
        would be taken for the next one."""
        return self._is_fit and not self._transport.is_closing()

    async def exchange(self, request: bytes, seconds: float) -> WholeAnswer | None:
        """Send a request and wait for its answer, at most this many seconds. None if aiohttp reads
        the answer, from `connection`."""
        waiter: asyncio.Future[WholeAnswer | None] = self._loop.create_future()
        self._waiter, self._ends = waiter, self._loop.time() + seconds
        if self._timer is None or self._timer_ends > self._ends:
            self._set_timer()
        try:
            self._transport.write(request)
            answer = await waiter
        finally:
            self._waiter = None
        if answer is None and self._has_expired:
            raise TimeoutError
        return answer

    def _set_timer(self) -> None:
        """Set a timer for the present request. It outlasts most requests, and is set again for the
        one that is on its way then: a timer of its own for each would take longer."""
        self._drop_timer()
        self._timer_ends = self._ends
        self._timer = self._loop.call_later(self._ends - self._loop.time(), self._check_time)

    def _check_time(self) -> None:
        """End the wait for an answer if it took too long."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._ends:
            self._set_timer()
        else:
            self._has_expired = True
            self._waiter.set_result(None)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def data_received(self, data: bytes) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            self._is_fit = False
            return
        if self._head is None:
            end = data.find(b"\r\n\r\n", 0, LONGEST_HEAD) + 4
            head = parse_plain_head(data[:end]) if end > 3 else None
            if head is None:
                self._hand_over(data, waiter)
                return
            status, headers, length = head
            missing = length + end - len(data)
            if missing == 0:  # as a rule
                waiter.set_result(WholeAnswer(status, headers, data[end:]))
                return
            self._head, self._parts, self._missing = head, [data[:end], data[end:]], missing
        else:
            self._parts.append(data)
            self._missing -= len(data)
        if self._missing < 0:  # more than the answer
            self._hand_over(self._take_parts(), waiter)
        elif self._missing == 0:
            status, headers, _ = self._head
            body = b"".join(self._parts[1:])
            self._take_parts()
            waiter.set_result(WholeAnswer(status, headers, body))

    def _take_parts(self) -> bytes:
        """What has arrived of an incomplete answer; it is no longer kept."""
        parts, self._parts, self._head = self._parts, [], None
        return b"".join(parts)

    def _hand_over(self, data: bytes, waiter: asyncio.Future[WholeAnswer | None]) -> None:
        """Let aiohttp read this answer."""
        self._is_fit = False
        self._drop_timer()
        self._transport.set_protocol(self._handler)
        self._handler.set_response_params(read_until_eof=True)
        if data:
            self._handler.data_received(data)
        waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_fit = False
        self._drop_timer()
        if (waiter := self._waiter) is not None and not waiter.done():
            self._hand_over(self._take_parts(), waiter)
        self._handler.connection_lost(exc)

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def close(self) -> None:
        self._is_fit = False
        self._drop_timer()
        self.connection.close()


class IdleConnections:
    """The connections to one address that wait for their next request."""

    __slots__ = ("_connections", "_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._connections: deque[PostConnection] = deque()  # the longest idle first
        self._timer: asyncio.TimerHandle | None = None

    def take(self) -> PostConnection | None:
        """Take the connection that was used last; None if there is none."""
        connections = self._connections
        while connections:
            connection = connections.pop()
            if connection.is_fit and monotonic() - connection.idle_since <= KEEPALIVE:
                return connection
            connection.close()
        return None

    def keep(self, connection: PostConnection) -> None:
        """Keep a connection whose request was answered."""
        connection.idle_since = monotonic()
        self._connections.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(KEEPALIVE, self._close_old)

    def _close_old(self) -> None:
        """Close the connections that were idle for too long."""
        connections, oldest = self._connections, monotonic() - KEEPALIVE
        while connections and (connections[0].idle_since <= oldest or not connections[0].is_fit):
            connections.popleft().close()
        rest = connections[0].idle_since - oldest if connections else 0
        self._timer = self._loop.call_later(rest, self._close_old) if connections else None

    def close(self) -> None:
        """Close all of them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._connections:
            self._connections.pop().close()
