"""The checks before every page: which hosts, which origins, which token, how long a body.

The answers forbid everything but the site's own style sheet, script and images.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_BODY = 1_000_000  # bytes of a form
COOKIE = "parley-token"
# people with a personal link have no token: the link itself is their secret
PERSONAL = ("/vote/", "/play/", "/static/")
SAFE_METHODS = ("GET", "HEAD")
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True)
class Safety:
    """Who may ask: the names of the server, as browsers send them, and the token, if one is
    needed."""

    hosts: frozenset[str]  # 127.0.0.1:8642
    token: str = ""  # empty: no token is needed, which is allowed on loopback only

    def is_right_token(self, given: str) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(given.encode(), self.token.encode())


class TooLong(Exception):
    """A body above the limit."""


class Guard:
    """ASGI middleware: refuses what `Safety` does not allow and adds the headers."""

    def __init__(self, app: ASGIApp, safety: Safety) -> None:
        self.app, self.safety = app, safety

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        try:
            await self.app(scope, bound_body(receive), send_with_headers)
        except TooLong:
            if not begun:
                told = f"The form is too long: at most {LONGEST_BODY:,} bytes can be sent.\n"
                await PlainTextResponse(told, 413)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that must not pass; None if it may."""
        headers = Headers(scope=scope)
        if not self._is_own_host(scope, headers.get("host", "").lower()):
            return PlainTextResponse("This server does not answer to that host name.\n", 421)
        if scope["method"] not in SAFE_METHODS and not self._is_same_origin(scope, headers):
            return PlainTextResponse("This form was sent by another site.\n", 403)
        length = headers.get("content-length", "0")
        if not re.fullmatch(r"\d{1,9}", length, re.ASCII) or int(length) > LONGEST_BODY:
            told = f"The form is too long: at most {LONGEST_BODY:,} bytes can be sent.\n"
            return PlainTextResponse(told, 413)
        if not self.safety.token or scope["path"].startswith(PERSONAL):
            return None
        return self._ask_for_token(scope, headers)

    def _is_own_host(self, scope: Scope, host: str) -> bool:
        """Whether a host is a name of this server, or the address at which it was reached: a
        machine may have addresses that its name does not lead to."""
        if host in self.safety.hosts:
            return True
        address, port = scope.get("server") or ("", None)
        return bool(address) and host == f"{name_host(address)}:{port}"

    def _is_same_origin(self, scope: Scope, headers: Headers) -> bool:
        """Whether a form came from a page of this server.

        Under `no-referrer` browsers send the origin `null` with a form. They also send
        `Sec-Fetch-Site`, except over plain HTTP between machines; there, the secret in the address
        of every form protects it.
        """
        origin = headers.get("origin")
        if origin is not None and origin != "null":
            scheme, _, host = origin.lower().partition("://")
            return scheme == scope["scheme"] and self._is_own_host(scope, host)
        return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")

    def _ask_for_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None with the right cookie. The right token in an address becomes a cookie."""
        port = (scope.get("server") or ("", None))[1]
        cookie = f"{COOKIE}-{port}"  # browsers send cookies to all ports of a machine
        kept = [each.strip().partition("=") for each in headers.get("cookie", "").split(";")]
        if any(name == cookie and self.safety.is_right_token(value) for name, _, value in kept):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token", "")
        if given and self.safety.is_right_token(given):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = "/" + scope.get("raw_path", b"").decode("latin-1").lstrip("/")
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            # not strict: the link must work in a mail or a chat; pages with the token are only read
            answer.set_cookie(cookie, self.safety.token, httponly=True, samesite="lax")
            return answer
        told = "Open the link that `parley view` printed: it has the token that this page needs.\n"
        return PlainTextResponse(told, 401)


def name_host(host: str) -> str:
    """A host as an address has it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def bound_body(receive: Receive) -> Receive:
    """The same stream, which fails once a body is longer than allowed."""
    seen = 0

    async def receive_bounded() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > LONGEST_BODY:
                raise TooLong
        return message

    return receive_bounded
