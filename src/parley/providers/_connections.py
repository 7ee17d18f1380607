"""Connections that all models of an event loop share."""

from __future__ import annotations

import asyncio
import errno
import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_reqrep import ConnectionKey

from parley.providers._post_connection import KEEPALIVE, IdleConnections


class SharedConnector:
    """The connections of one event loop, and how many transports use them."""

    def __init__(self) -> None:
        self.connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE)
        self.users = 0
        self._idle: dict[ConnectionKey, IdleConnections] = {}

    def idle_connections(self, request: aiohttp.ClientRequest) -> IdleConnections:
        """The idle connections that lead where a request goes."""
        new = IdleConnections(asyncio.get_running_loop())
        return self._idle.setdefault(request.connection_key, new)

    async def close(self) -> None:
        """Close all connections."""
        await self.connector.close()  # first: the loop that the connections belong to may be closed
        for idle in self._idle.values():
            idle.close()


SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedConnector] = WeakKeyDictionary()


def shared_connector() -> SharedConnector:
    """One pool for all models of a loop: several of them often share an address."""
    loop = asyncio.get_running_loop()
    shared = SHARED.get(loop) or SHARED.setdefault(loop, SharedConnector())
    shared.users += 1
    return shared


def release_connector(loop: asyncio.AbstractEventLoop) -> SharedConnector | None:
    """Release one use; the last user gets the connections, to close them."""
    shared = SHARED[loop]
    shared.users -= 1
    return None if shared.users else SHARED.pop(loop)


def describe_connection_error(wrong: aiohttp.ClientConnectorError) -> str:
    """Why no connection could be made."""
    if isinstance(wrong, aiohttp.ClientSSLError):
        return "the server's TLS certificate is not trusted"
    if isinstance(wrong, aiohttp.ClientConnectorDNSError):
        return "host not found"
    number = wrong.os_error.errno
    if number is None or number == errno.ECONNREFUSED:
        return "connection refused (is the server running?)"
    return os.strerror(number)


def find_proxy(url: str) -> str | None:
    """The proxy that the environment sets for an address. It is looked up once, because that takes
    longer than a call."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def is_proxy_address(proxy: str) -> bool:
    """Whether requests can be sent through a proxy at this address."""
    try:
        parts = urlsplit(proxy)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
