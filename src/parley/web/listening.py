"""The server: a socket that is open before anything is announced, then uvicorn on it."""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette

from parley.errors import UsageError
from parley.tables import shorten
from parley.web.safety import Safety, name_host

TOKEN_VARIABLE = "PARLEY_VIEW_TOKEN"
SHORTEST_TOKEN = 16
MOST_CONNECTIONS = 500
GRACE_SECONDS = 2  # how long open streams may take to end


@dataclass(frozen=True)
class Address:
    """Where a server listens, on an open socket."""

    socket: socket.socket
    host: str
    port: int
    safety: Safety

    @property
    def url(self) -> str:
        """What a user opens, without a token."""
        everywhere = ipaddress.ip_address(self.host).is_unspecified
        return f"http://{name_host(socket.gethostname() if everywhere else self.host)}:{self.port}"

    def link(self, path: str = "/") -> str:
        """What a user opens, with the token if one is needed."""
        token = self.safety.token
        return f"{self.url}{path}{f'?token={token}' if token else ''}"


def open_address(bind: str, port: int, setting: str = "--port") -> Address:
    """An open socket on `bind`; other machines can reach it only if it is not loopback, and then a
    token is needed. `setting` is where the user chose the port."""
    opened = None
    try:
        kind, _, _, _, found = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(kind, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(found)
        opened.listen(128)
    except (OSError, UnicodeError) as wrong:  # a name that cannot be encoded is no host
        if opened is not None:
            opened.close()
        if isinstance(wrong, UnicodeError | socket.gaierror) or wrong.errno == errno.EADDRNOTAVAIL:
            raise UsageError(
                "--bind must be an address of this machine, such as 127.0.0.1 (this machine only) "
                f"or 0.0.0.0 (all its addresses), not {shorten(bind)!r}"
            ) from None
        if wrong.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} is already in use: stop the other server, or choose another port "
                f"with {setting} (0 takes any free one)"
            ) from None
        if wrong.errno == errno.EACCES:
            raise UsageError(
                f"port {port} is reserved for the system: choose a port above 1023 with --port"
            ) from None
        raise UsageError(f"the server cannot listen on {bind}:{port}: {wrong}") from None
    taken = opened.getsockname()
    host, port = str(taken[0]), int(taken[1])
    token = "" if ipaddress.ip_address(host).is_loopback else find_token()
    names = {host, bind}
    if not token:
        names |= {"localhost", "127.0.0.1", "::1"}
    elif ipaddress.ip_address(host).is_unspecified:
        names |= {"localhost", "127.0.0.1", "::1", socket.gethostname()}
    hosts = frozenset(f"{name_host(name.lower())}:{port}" for name in names)
    if port == 80:
        hosts |= {name_host(name.lower()) for name in names}
    return Address(opened, host, port, Safety(hosts, token))


def find_token() -> str:
    """The token of the environment, else a new one."""
    given = os.environ.get(TOKEN_VARIABLE, "")
    if given and (len(given) < SHORTEST_TOKEN or not given.isascii() or not given.isalnum()):
        raise UsageError(
            f"{TOKEN_VARIABLE} must have at least {SHORTEST_TOKEN} letters and digits and nothing "
            "else"
        )
    return given or secrets.token_hex(16)


class PageServer(uvicorn.Server):
    """A server that ends its streams when it stops, so that it need not wait for their readers."""

    def __init__(
        self, config: uvicorn.Config, on_stop: Callable[[], None], takes_signals: bool
    ) -> None:
        super().__init__(config)
        self._on_stop, self._takes_signals = on_stop, takes_signals

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if not self._takes_signals:
            yield
            return
        with super().capture_signals():
            if not hasattr(signal, "SIGHUP"):  # Windows
                yield
                return
            before = signal.getsignal(signal.SIGHUP)
            if before is not signal.SIG_IGN:  # `nohup` lets the server go on
                signal.signal(signal.SIGHUP, self.handle_exit)
            try:
                yield
            finally:
                signal.signal(signal.SIGHUP, before)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def make_server(app: Starlette, takes_signals: bool = True) -> PageServer:
    """A server that says nothing by itself; `await server.serve(sockets=[address.socket])`."""
    config = uvicorn.Config(
        app,
        http="h11",  # with the limit of a header below
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=65_536,
        limit_concurrency=MOST_CONNECTIONS,
    )
    return PageServer(config, app.state.site.live.close, takes_signals)
