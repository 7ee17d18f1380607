"""One POST over aiohttp's connections, without aiohttp's session.

The session prepares every request anew: its address, headers, cookies, timers, and a task that
writes the body. This takes twice as long as sending the request and reading its answer. Here all
requests of a model share one prepared request. aiohttp connects, by TLS or through a proxy if need
be, and reads the answers that are not plain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias

import aiohttp
from aiohttp.abc import AbstractCookieJar
from aiohttp.http import HttpProcessingError
from yarl import URL

from parley.providers._connections import SharedConnector
from parley.providers._post_connection import PostConnection, WholeAnswer

CONNECT = 15.0  # seconds to reach the endpoint
STALE = 20  # connections that are not fit for use, one after the other


class InvalidHeader(ValueError):
    """A header that would break the request. The message does not contain its value."""


class PostTarget:
    """Where a model's requests go: an address, the headers of every request, and the connections
    that lead there."""

    def __init__(
        self,
        url: URL,
        headers: Mapping[str, str],
        shared: SharedConnector,
        cookies: AbstractCookieJar,
        proxy: str | None,
        timeout: float | None,
    ) -> None:
        """`timeout`: seconds without data after which a request fails."""
        encode_headers(headers)  # raises an error if one of them is not valid
        self.url, self.timeout, self.cookies = url, timeout, cookies
        self._connector = shared.connector
        self.loop = asyncio.get_running_loop()
        self._limits = aiohttp.ClientTimeout(sock_connect=CONNECT)
        self._request = aiohttp.ClientRequest(
            "POST",
            url,
            headers={**headers, "Content-Type": "application/json"},
            loop=self.loop,
            proxy=URL(proxy) if proxy else None,
        )
        self._has_cookies = False
        self._head = b"" if proxy else self._encode_head()
        # None: aiohttp reads all answers, since it knows proxies and such timeouts
        self.idle = None if proxy or timeout else shared.idle_connections(self._request)

    async def connect(self) -> Any:
        """Take a free connection, or open one. A connection on which something has arrived since
        its last answer is closed: this would be taken for the answer to the next request."""
        for _ in range(STALE):
            connection = await self._connector.connect(self._request, [], self._limits)
            protocol, transport = connection.protocol, connection.transport
            is_open = transport is not None and not transport.is_closing()
            if is_open and protocol is not None and not protocol.should_close:
                return connection
            connection.close()
        raise aiohttp.ClientConnectionResetError(
            "the endpoint closes its connections or sends data before a request"
        )

    def encode(self, body: bytes, headers: Mapping[str, str] | None) -> bytes:
        """A request as it is sent; `headers` are its own, besides those of every request."""
        # aiohttp adds a header for the proxy when it connects
        head, more = self._head or self._encode_head(), b""
        if self._has_cookies and (found := self.cookies.filter_cookies(self.url)):
            more = encode_headers({"Cookie": found.output(header="", sep=";").strip()})
        if headers:
            more += encode_headers(headers)
        return b"%bContent-Length: %d\r\n%b\r\n%b" % (head, len(body), more, body)

    def _encode_head(self) -> bytes:
        """The first line, and the headers of every request."""
        request = self._request
        path = str(self.url) if request.proxy and not request.is_ssl() else self.url.raw_path_qs
        headers = request.headers.copy()
        headers.pop("Content-Length", None)
        return f"POST {path} HTTP/1.1\r\n".encode() + encode_headers(headers)

    def keep_cookies(self, headers: Any) -> None:
        """Keep the cookies of an answer for later requests: they may lead to the same server."""
        for line in headers.getall("Set-Cookie"):
            with suppress(CookieError):
                self.cookies.update_cookies(SimpleCookie(line), self.url)
                self._has_cookies = True

    def describe_broken_answer(self, broken: HttpProcessingError) -> aiohttp.ClientError:
        """The error for an answer that is not HTTP."""
        return aiohttp.ClientResponseError(
            self._request.request_info, (), status=broken.code, message=broken.message
        )


class PostedRequest:
    """A request on its way."""

    __slots__ = ("_body", "_headers", "_target", "content", "headers", "sent", "status")

    # of an answer that aiohttp reads
    status: int
    headers: Mapping[str, str]
    content: aiohttp.StreamReader

    def __init__(
        self, target: PostTarget, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self._target, self._body, self._headers = target, body, headers
        self.sent = False  # before that, nothing can be billed

    async def answer(self, seconds: float, read_body: ReadBody) -> WholeAnswer:
        """Send the request and wait for its whole answer, at most this many seconds. `read_body`
        reads the body of an answer that comes in pieces."""
        target = self._target
        if target.idle is None:
            async with asyncio.timeout(seconds):
                return await self._stream_answer(await target.connect(), read_body)
        if (connection := target.idle.take()) is None:
            began = target.loop.time()
            async with asyncio.timeout(seconds):
                connection = PostConnection(await target.connect(), target.loop)
            seconds -= target.loop.time() - began
        began = target.loop.time()
        try:
            self.sent = True
            found = await connection.exchange(target.encode(self._body, self._headers), seconds)
        except BaseException:
            connection.close()
            raise
        if found is not None:
            target.idle.keep(connection)
            return found
        async with asyncio.timeout(began + seconds - target.loop.time()):
            return await self._stream_answer(connection.connection, read_body)

    async def _stream_answer(self, connection: Any, read_body: ReadBody) -> WholeAnswer:
        """The answer, read by aiohttp; the request is sent if it was not yet."""
        target, protocol = self._target, connection.protocol
        try:
            if not self.sent:
                protocol.set_response_params(read_until_eof=True, read_timeout=target.timeout)
                self.sent = True
                connection.transport.write(target.encode(self._body, self._headers))
                if target.timeout:
                    await protocol._drain_helper()  # a long request is sent piece by piece
                    protocol.start_timeout()
            while True:
                message, self.content = await protocol.read()
                if not 100 <= message.code < 200 or message.code == 101:
                    break  # others only announce the answer
            self.status, self.headers = message.code, message.headers
            if "Set-Cookie" in message.headers:
                target.keep_cookies(message.headers)
            answer = WholeAnswer(self.status, self.headers, await read_body(self))
        except HttpProcessingError as broken:
            connection.close()
            raise target.describe_broken_answer(broken) from broken
        except BaseException:
            connection.close()
            raise
        connection.release()  # aiohttp closes it if the answer was not read to its end
        return answer

    @property
    def content_length(self) -> int | None:
        """The length of the answer's body, if its head says so."""
        length = self.headers.get("Content-Length")
        return None if length is None else int(length)

    async def read(self) -> bytes:
        """The whole body of the answer."""
        return await self.content.read()


ReadBody: TypeAlias = Callable[[PostedRequest], Awaitable[bytes]]


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Headers as they are sent. A line break in one of them is an error: it would
    begin another header."""
    text = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if text.count("\r") != len(headers) or text.count("\n") != len(headers) or "\0" in text:
        wrong = next(
            name for name, value in headers.items() if set("\r\n\0") & set(f"{name}{value}")
        )
        raise InvalidHeader(f"the header {wrong!r} contains a line break or a NUL character")
    return text.encode()
