"""Connections that all models of an event loop share."""

from __future__ import annotations

import asyncio
import errno
import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import aiohttp

# Seconds that an idle connection is kept. Usual servers close theirs after 5: if that crosses a
# request, nobody knows whether it was paid.
KEEPALIVE = 4.0


class SharedConnector:
    """The connections of one event loop, and how many transports use them."""

    def __init__(self) -> None:
        self.connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE)
        self.users = 0


SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedConnector] = WeakKeyDictionary()


def shared_connector() -> aiohttp.TCPConnector:
    """One pool for all models of a loop: several of them often stand behind one address."""
    loop = asyncio.get_running_loop()
    shared = SHARED.get(loop) or SHARED.setdefault(loop, SharedConnector())
    shared.users += 1
    return shared.connector


def release_connector(loop: asyncio.AbstractEventLoop) -> aiohttp.TCPConnector | None:
    """One transport fewer; the last one gets the connections, to close them."""
    shared = SHARED[loop]
    shared.users -= 1
    return None if shared.users else SHARED.pop(loop).connector


def describe_connection_error(wrong: aiohttp.ClientConnectorError) -> str:
    """Why no connection could be made."""
    if isinstance(wrong, aiohttp.ClientSSLError):
        return "its certificate is not accepted"
    if isinstance(wrong, aiohttp.ClientConnectorDNSError):
        return "host not found"
    number = wrong.os_error.errno
    if number is None or number == errno.ECONNREFUSED:
        return "nothing listens there"
    return os.strerror(number)


def find_proxy(url: str) -> str | None:
    """The proxy that the environment names for an address, looked up once: for every request it
    would cost more than the call."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
