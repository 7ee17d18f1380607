"""Connections that all models of an event loop share, and why they fail, in words."""

from __future__ import annotations

import asyncio
import errno
import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import aiohttp

CONNECT = 15.0  # seconds to reach the endpoint
# Seconds that an idle connection is kept. Most servers close theirs after 5: if that crosses a
# request, it is unknown whether the request is billed.
KEEPALIVE = 4.0


class SharedConnector:
    """The connections of one event loop, and how many transports use them."""

    def __init__(self) -> None:
        self.connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE)
        self.users = 0


SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedConnector] = WeakKeyDictionary()


def shared_connector() -> aiohttp.TCPConnector:
    """One pool for all models of a loop: several of them often share an address."""
    loop = asyncio.get_running_loop()
    shared = SHARED.get(loop) or SHARED.setdefault(loop, SharedConnector())
    shared.users += 1
    return shared.connector


def release_connector(loop: asyncio.AbstractEventLoop) -> aiohttp.TCPConnector | None:
    """Release one use; the last user gets the connections, to close them."""
    shared = SHARED[loop]
    shared.users -= 1
    return None if shared.users else SHARED.pop(loop).connector


def describe_http_failure(wrong: Exception) -> str:
    """Why there is no connection or no answer. Addresses are left out: they may hold secrets."""
    match wrong:
        case aiohttp.ClientConnectorCertificateError():
            return "the server's TLS certificate is not trusted"
        case aiohttp.ClientSSLError():
            return (
                "the TLS handshake failed (if the server speaks plain HTTP, the address must begin "
                "with http://)"
            )
        case aiohttp.ClientConnectorDNSError():
            return "host not found"
        case aiohttp.ClientConnectorError(errno=None | errno.ECONNREFUSED):
            return "connection refused (is the server running?)"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answers HTTP {wrong.status} {wrong.message}"
        case aiohttp.ClientResponseError():  # aiohttp uses it for what its parser does not accept
            return (
                f"the answer cannot be read as HTTP/1.1: {' '.join(wrong.message.split())} (does "
                "the address lead to an HTTP server? If the server uses TLS, the address must "
                "begin with https://)"
            )
        case aiohttp.ClientPayloadError():
            return "the answer broke off, or its body is not encoded as its headers say"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection without an answer"
        case TimeoutError():
            return "timeout"
        case OSError(errno=int(number)):
            return os.strerror(number)
    return f"the connection was lost ({type(wrong).__name__})"


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
