"""JSON over HTTP: connections shared by all models of a run, a deadline for each call, bounded
retries and bounded answers."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4

import aiohttp
import orjson
from yarl import URL

from parley.errors import FaultKind, Filtered, ParticipantError, Refused, Rejected
from parley.match.protocol import Call
from parley.providers._connections import (
    SharedConnector,
    describe_connection_error,
    find_proxy,
    is_proxy_address,
    release_connector,
    shared_connector,
)
from parley.providers._endpoint_health import (
    EndpointHealth,
    Retryable,
    backoff_seconds,
    health_of_endpoint,
    sleep_unless_stopped,
)
from parley.providers._error_bodies import (
    LOOKED_AT,
    find_error,
    find_wait,
    parse_answer,
    read_error,
)
from parley.providers._post_connection import LARGEST, WholeAnswer
from parley.providers._posting import CONNECT, InvalidHeader, PostedRequest, PostTarget
from parley.providers._secrets import keep_secret, mask_in_json, redact
from parley.tables import shorten

TRIES = 5
LIMITED = {429, 529}  # too many requests
# a proxy gave up waiting: the model may have answered, and the call may be billed
UNSURE = {408, 504, 524}
PASSING = {408, 409, 425, 429}  # may succeed next time, like everything from 500 on
# comes with status 429, but is permanent
SPENT = re.compile(r"insufficient_quota|billing_hard_limit")
# errors about the model itself, not about one request
FINAL: dict[int, tuple[FaultKind, str]] = {
    401: ("key", "check the API key"),
    402: ("credit", "check the account's credit"),
    403: ("key", "check the API key"),
    404: ("address", "check the model's name and base_url"),
    429: ("credit", "check the account's credit"),
}
# paths of addresses that lack the version
BARE = ("/chat/completions", "/completions", "/responses", "/messages")
StreamedResponse: TypeAlias = PostedRequest | aiohttp.ClientResponse


class Deadline:
    """When a call must be over, counted from its first request, however many follow."""

    __slots__ = ("ends",)

    def __init__(self) -> None:
        self.ends = 0.0  # not yet known


class Transport:
    """Posts JSON to one endpoint."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        deadline: float = 600.0,
        address: str = "",
        *,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        idempotency_header: str | None = None,
        scope: str = "",
        filtered: Callable[[int, str], bool] = lambda status, said: False,
    ) -> None:
        for name, seconds in {"deadline": deadline, "timeout": timeout}.items():
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be more than 0 seconds, not {seconds:g}")
        if key is not None and not (key := key.strip()).isprintable():
            raise ValueError(
                "the API key contains characters that are not allowed in an HTTP "
                "header: check the key"
            )
        self.url, self.deadline, self.timeout, self._idempotency = (
            url,
            deadline,
            timeout,
            idempotency_header,
        )
        # whether an error refuses the content of a request
        self._scope, self._filtered = scope, filtered
        self.address = address or redact(url.partition("?")[0])  # how errors name the endpoint
        self._headers = {"Accept-Encoding": "identity", **(headers or {})}
        if key:
            keep_secret(key)
            self._headers[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
        # One account and model at one host: rate limits apply to these, and one model that is down
        # says nothing about others.
        self._endpoint = (
            f"{scope} {'/'.join(url.split('/', 3)[:3])} "
            f"{blake2b((key or '').encode(), digest_size=8).hexdigest()}"
        )
        self._health: EndpointHealth | None = None
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # to which the session belongs
        self._target: PostTarget | None = None  # None: no request can be sent
        self._invalid = ""  # why

    async def post(self, body: bytes, call: Call, deadline: Deadline | None = None) -> Any:
        """The endpoint's answer, within the deadline, which begins with the first request.

        Several requests of one call share its deadline.
        """
        if self._session is None or self._loop is not asyncio.get_running_loop():
            await self._ensure_open()
        assert self._health is not None
        health, tries, deadline = self._health, 0, deadline or Deadline()
        last: Retryable | None = None
        # the same for every try
        headers = {self._idempotency: uuid4().hex} if self._idempotency else None
        while True:
            if deadline.ends and time.monotonic() >= deadline.ends:
                raise self._deadline_error(last)
            rest = deadline.ends - time.monotonic() if deadline.ends else self.deadline
            slot, waited = await self._wait_for_turn(health, call, rest, last)
            try:
                await call.before_request()
                seconds = (
                    max(1e-3, deadline.ends + waited - time.monotonic()) if deadline.ends else None
                )
                deadline.ends = (
                    deadline.ends + waited if deadline.ends else time.monotonic() + self.deadline
                )
                answer = await self._send_once(body, headers, seconds or self.deadline)
                health.succeeded(call)
                return answer
            except (Rejected, Refused) as refused:
                health.succeeded(call)  # the endpoint works, although it refused the request
                call.refused(str(refused))
                raise
            except TimeoutError:
                self._report_failure(
                    health, call, Retryable(f"no answer within {self.deadline:g} s", unsure=True)
                )
                raise self._deadline_error(last) from None
            except Retryable as problem:
                self._report_failure(health, call, problem)
                last = problem
            finally:
                health.release_slot(slot)
            tries += not last.limited
            if tries == TRIES:
                raise ParticipantError(f"{self.address}: {last} ({tries} tries)", kind=last.kind)
            if not last.limited and not health.down:
                await sleep_unless_stopped(
                    min(
                        last.seconds or backoff_seconds(tries - 1),
                        max(0.0, deadline.ends - time.monotonic()),
                    ),
                    call,
                )

    def _report_failure(self, health: EndpointHealth, call: Call, problem: Retryable) -> None:
        """Report a request without an answer."""
        health.failed(problem, call)
        if not problem.unsure:
            call.refused(str(problem))
            return
        call.lost(str(problem))
        call.notice(
            f"{self.address}: {problem}; you may be billed for this call although it got no answer"
        )

    async def _wait_for_turn(
        self, health: EndpointHealth, call: Call, seconds: float, last: Retryable | None
    ) -> tuple[int, float]:
        """Wait for a slot of the endpoint and for the model's rate limit.

        Returns the slot, and the part of the wait that does not count against the deadline: the
        time for the rate limit, and that in which other calls were answered.
        """
        uncounted = 0.0
        while True:
            if queued := not health.has_free_slot:
                try:
                    slot, waited = await health.wait_for_slot(seconds, call)
                except TimeoutError:
                    raise self._deadline_error(
                        last
                        or Retryable(
                            "the call waited in the queue, and the endpoint answered no call"
                        )
                    ) from None
                uncounted += waited
            else:
                slot = health.take_slot()
            try:
                if queued:
                    call.check_running()  # the run may have stopped since
                began = time.monotonic()
                await call.wait_for_rate()
                uncounted += time.monotonic() - began
                if not health.must_wait(slot):
                    return slot, uncounted
            except BaseException:
                health.release_slot(slot)
                raise
            health.release_slot(slot)

    def _deadline_error(self, last: Retryable | None) -> ParticipantError:
        before = f" (the error before that was: {last})" if last else ""
        return ParticipantError(
            f"{self.address}: no answer within {self.deadline:g} s{before}",
            kind=last.kind if last else "",
        )

    async def _send_once(
        self, body: bytes, headers: Mapping[str, str] | None, seconds: float
    ) -> Any:
        if self._target is None:
            raise Refused(self._invalid, kind="address")
        request = PostedRequest(self._target, body, headers)
        try:
            # A redirect would carry the prompt elsewhere, or turn into another method: it is
            # reported, not followed.
            answer = await request.answer(seconds, self._read_body)
        except (aiohttp.ClientError, OSError, TimeoutError) as fault:
            raise self._explain_failure(fault, request.sent) from None
        if not 200 <= answer.status < 300:
            raise self._error_in(answer, answer.body)
        return self._answer_in(parse_answer(answer.body), answer.headers)

    def _explain_failure(self, fault: Exception, sent: bool) -> Exception:
        """The error for a request without an answer; a timeout stays one if the request was
        sent."""
        if isinstance(fault, aiohttp.ConnectionTimeoutError):
            return Retryable("cannot connect: timeout", kind="unreachable")
        if isinstance(fault, aiohttp.SocketTimeoutError):
            return Retryable(f"no data for {self.timeout:g} s", unsure=True)
        if isinstance(fault, aiohttp.InvalidURL):
            return Refused(f"{self.address} is not a valid address", kind="address")
        if isinstance(fault, aiohttp.ClientConnectorError):
            said = describe_connection_error(fault)
            return Retryable(f"cannot connect: {said}", kind="unreachable")
        if isinstance(fault, TimeoutError):
            return fault if sent else Retryable("cannot connect: timeout", kind="unreachable")
        return Retryable(self._describe_error(fault) or type(fault).__name__, unsure=sent)

    def _error_in(
        self, response: WholeAnswer | aiohttp.ClientResponse, answer: bytes, place: str = ""
    ) -> Exception:
        """The exception for an answer with the status of an error."""
        said = answer[:LOOKED_AT].decode("utf-8", "replace").strip()
        location = response.headers.get("Location", "")
        wait = find_wait(response.headers, said)
        return self._error_for(response.status, said, wait, location=location, place=place)

    def _answer_in(self, found: Any, headers: Mapping[str, str]) -> Any:
        """An answer without secrets; raises the error in it, because some endpoints send errors
        with status 200."""
        found = mask_in_json(found)
        if error := find_error(found):
            status, said, whole = read_error(error)
            raise self._error_for(status, said, find_wait(headers, whole), whole=whole)
        return found

    def read_result(self, status: int, body: Any) -> Any:
        """The answer in a line of a batch; raises what `post` raises for such an answer, once."""
        if not 200 <= status < 300:
            raise self._error_for(status, orjson.dumps(body).decode()[:LOOKED_AT])
        return self._answer_in(body, {})

    async def fetch(
        self, method: str, url: str, seconds: float, place: str = "", **options: Any
    ) -> Any:
        """Send one request to another address of the endpoint, which errors name as `place`,
        without retries: the parsed answer."""
        async with self.stream(method, url, seconds, place, **options) as response:
            answer = await self._read_body(response)
        return mask_in_json(parse_answer(answer))

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, seconds: float, place: str = "", **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The same, for an answer that may be large."""
        await self._ensure_open()
        assert self._session is not None
        if self._target is None:
            raise Refused(self._invalid, kind="address")
        limits = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT)
        headers = {**self._headers, **options.pop("headers", {})}
        try:
            async with self._session.request(
                method,
                url,
                headers=headers,
                allow_redirects=False,
                timeout=limits,
                **options,
            ) as response:
                if not 200 <= response.status < 300:
                    raise self._error_in(response, await self._read_body(response), place)
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError) as fault:
            explained = self._explain_failure(fault, sent=True)
            if isinstance(explained, TimeoutError):
                explained = Retryable(f"no answer within {seconds:g} s", unsure=True)
            raise explained from None

    async def _ensure_open(self) -> None:
        """Open a session for the running event loop, if the last one belongs to another."""
        if self._session is None or self._loop is not asyncio.get_running_loop():
            left = self._drop()
            self._open()
            if left is not None:
                await left.close()

    def _open(self) -> None:
        self._loop, proxy = asyncio.get_running_loop(), find_proxy(self.url)
        shared = shared_connector()
        # The session has no headers of its own: it would send them to a proxy, and the key is one.
        self._session = aiohttp.ClientSession(
            connector=shared.connector, connector_owner=False, proxy=proxy
        )
        self._target = None
        if proxy and not is_proxy_address(proxy):
            name = f"{urlsplit(self.url).scheme}_proxy"
            self._invalid = (
                f"the environment variable {name} must be the address of an HTTP proxy, such as "
                f"http://localhost:3128: correct or unset it"
            )
        else:
            try:
                cookies = self._session.cookie_jar
                self._target = PostTarget(
                    URL(self.url), self._headers, shared, cookies, proxy, self.timeout
                )
            except InvalidHeader as wrong:
                self._invalid = f"{self.address}: {wrong}"
            except ValueError:
                self._invalid = f"{self.address} is not a valid address"
        self._health = health_of_endpoint(self._endpoint, self.address, self._scope)

    async def _read_body(self, response: StreamedResponse) -> bytes:
        """The body of an answer, if it is not too large; a compressed one may be larger than its
        header says."""
        length = response.content_length
        if length is not None and "Content-Encoding" not in response.headers:
            self._refuse_large(length)
            return await response.read()
        parts, size = [], 0
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            self._refuse_large(size)
        return b"".join(parts)

    def _describe_error(self, broken: Exception) -> str:
        """The message of an error with keys masked, and with the address as the user wrote it."""
        said, host = (
            redact(str(broken)).replace(self.url, self.address),
            urlsplit(self.url).hostname or "",
        )
        return said if host in self.address else said.replace(host, "[host]")

    def _refuse_large(self, size: int) -> None:
        if size > LARGEST:
            raise ParticipantError(
                f"{self.address}: the response is larger than {LARGEST >> 20} MB"
            )

    def _error_for(
        self,
        status: int,
        said: str,
        wait: float = 0,
        location: str = "",
        whole: str = "",
        place: str = "",
    ) -> Exception:
        """The exception for an error: try again, or give up with advice. `whole` is the whole error
        if `said` is only its message; `place` names another address than that of calls."""
        whole, place = whole or said, place or self.address
        fault = (f"HTTP {status}" if status else "the endpoint returned an error") + (
            f": {redact(said)[:500]}" if said else ""
        )
        if (status in PASSING or status >= 500) and not SPENT.search(whole):
            return Retryable(
                fault,
                wait,
                limited=status in LIMITED or bool(wait),
                unsure=status in UNSURE,
                status=status,
            )
        if self._filtered(status, whole):
            return Filtered(f"{place}: {fault}", status=status)
        kind: FaultKind
        if location:
            kind, advice = (
                "address",
                f"the endpoint redirects to {shorten(redact(location.partition('?')[0]), 200)}",
            )
        elif status in FINAL:
            kind, advice = FINAL[status]
        else:  # it may be a fault of this one request, such as its length
            return Rejected(f"{place}: {fault}", answer=fault, status=status)
        bare = kind == "address" and urlsplit(self.url).path in BARE
        hint = "did you leave out /v1 at the end of base_url?" if bare else ""
        return Refused(f"{place}: {fault} ({advice})", kind=kind, hint=hint, status=status)

    def _drop(self) -> SharedConnector | None:
        """Drop the session, which may belong to a loop that has ended; returns its connections if
        they must be closed here."""
        if self._session is None or self._loop is None:
            return None
        self._session.detach()
        self._session, shared = None, release_connector(self._loop)
        return (
            shared if self._loop.is_closed() or self._loop is asyncio.get_running_loop() else None
        )

    async def close(self) -> None:
        if (left := self._drop()) is not None:
            await left.close()
