"""JSON over HTTP: connections shared by all models of a run, a deadline for each call, bounded
retries and bounded answers."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import aiohttp
import orjson

from parley.errors import FaultKind, Filtered, ParticipantError, Refused, Rejected
from parley.match.protocol import Call
from parley.providers._connections import (
    CONNECT,
    describe_http_failure,
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
from parley.providers._replies import check_id
from parley.providers._secrets import keep_secret, mask_in_json, redact
from parley.tables import shorten

TRIES = 5
LARGEST = 16 * 2**20  # bytes of one answer
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


class EndpointAnswer(NamedTuple):
    """What an endpoint answered, and how it names the request."""

    content: Any
    request_id: str | None


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
        direct: bool = False,
    ) -> None:
        """`direct`: past any proxy that the environment sets."""
        for name, seconds in {"deadline": deadline, "timeout": timeout}.items():
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be more than 0 seconds, not {seconds:g}")
        if key is not None and not (key := key.strip()).isprintable():
            raise ValueError(
                "the API key contains characters that are not allowed in an HTTP "
                "header: check the key"
            )
        for header, value in {**(headers or {}), idempotency_header or "": ""}.items():
            if {"\r", "\n", "\0"} & {*header, *value}:  # it would begin another header
                raise ValueError(f"the header {header!r} contains a line break or a NUL character")
        self.url, self.deadline, self.timeout, self._idempotency = (
            url,
            deadline,
            timeout,
            idempotency_header,
        )
        # whether an error refuses the content of a request
        self._scope, self._filtered, self._direct = scope, filtered, direct
        self.address = address or redact(url.partition("?")[0])  # how errors name the endpoint
        # A session with headers of its own would send them to a proxy, and the key is one.
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
        self._invalid = ""  # why no request can be sent

    async def post(
        self, body: bytes, call: Call, deadline: Deadline | None = None
    ) -> EndpointAnswer:
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
        call.unanswered(str(problem))
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
    ) -> EndpointAnswer:
        assert self._session is not None
        if self._invalid:
            raise Refused(self._invalid, kind="address")
        is_sent = False  # before that, nothing can be billed

        async def send_body() -> AsyncIterator[bytes]:
            nonlocal is_sent
            await asyncio.sleep(0)  # aiohttp returns an answer that is already there, unasked
            is_sent = True
            yield body

        length = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        limits = aiohttp.ClientTimeout(seconds, sock_connect=CONNECT, sock_read=self.timeout)
        try:
            async with self._session.post(
                self.url,
                data=send_body(),
                headers={**self._headers, **length, **(headers or {})},
                allow_redirects=False,  # one would carry the prompt elsewhere: it is reported
                timeout=limits,
            ) as response:
                if not is_sent:
                    response.close()
                    raise Retryable("the server sent an answer before it had a request")
                answer = await self._read_body(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as fault:
            raise self._explain_failure(fault, is_sent) from None
        if not 200 <= response.status < 300:
            raise self._error_in(response, answer)
        found = self._answer_in(parse_answer(answer), response.headers)
        return EndpointAnswer(found, find_request_id(response.headers))

    def _explain_failure(self, fault: Exception, sent: bool) -> Exception:
        """The error for a request without an answer; a timeout stays one if the request was
        sent."""
        if isinstance(fault, aiohttp.InvalidURL):
            return Refused(f"{self.address} is not a valid address", kind="address")
        if isinstance(fault, aiohttp.SocketTimeoutError):
            return Retryable(f"no data for {self.timeout:g} s", unsure=sent)
        no_connection = (
            aiohttp.ClientConnectorError,
            aiohttp.ClientHttpProxyError,
            aiohttp.ConnectionTimeoutError,
        )
        if isinstance(fault, no_connection) or (isinstance(fault, TimeoutError) and not sent):
            return Retryable(f"cannot connect: {describe_http_failure(fault)}", kind="unreachable")
        if isinstance(fault, TimeoutError):
            return fault
        return Retryable(describe_http_failure(fault), unsure=sent)

    def _error_in(
        self, response: aiohttp.ClientResponse, answer: bytes, place: str = ""
    ) -> Exception:
        """The exception for an answer with the status of an error."""
        with suppress(orjson.JSONDecodeError):  # a key may be written with the escapes of JSON
            answer = orjson.dumps(mask_in_json(orjson.loads(answer)))
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

    def read_result(self, status: int, body: Any, request_id: Any = None) -> EndpointAnswer:
        """The answer in a line of a batch; raises what `post` raises for such an answer, once."""
        if not 200 <= status < 300:
            raise self._error_for(status, orjson.dumps(body).decode()[:LOOKED_AT])
        return EndpointAnswer(self._answer_in(body, {}), check_id(mask_in_json(request_id)))

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
        if self._invalid:
            raise Refused(self._invalid, kind="address")
        limits = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT)
        headers = {**self._headers, **options.pop("headers", {})}
        try:
            # A session and a connection of its own: no answer to another request can arrive on it.
            async with (
                aiohttp.ClientSession(proxy=self._proxy) as session,
                session.request(
                    method,
                    url,
                    headers=headers,
                    allow_redirects=False,
                    timeout=limits,
                    **options,
                ) as response,
            ):
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
        self._loop, self._invalid = asyncio.get_running_loop(), ""
        proxy = self._proxy = None if self._direct else find_proxy(self.url)
        self._session = aiohttp.ClientSession(
            connector=shared_connector(), connector_owner=False, proxy=proxy
        )
        if proxy and not is_proxy_address(proxy):
            name = f"{urlsplit(self.url).scheme}_proxy"
            self._invalid = (
                f"the environment variable {name} must be the address of an HTTP proxy, such as "
                f"http://localhost:3128: correct or unset it"
            )
        self._health = health_of_endpoint(self._endpoint, self.address, self._scope)

    async def _read_body(self, response: aiohttp.ClientResponse) -> bytes:
        """The body of an answer, if it is not too large; a compressed one may be larger than its
        header says."""
        self._refuse_large(response.content_length or 0)
        parts, size = [], 0
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            self._refuse_large(size)
        return b"".join(parts)

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

    def _drop(self) -> aiohttp.TCPConnector | None:
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


def find_request_id(headers: Mapping[str, str]) -> str | None:
    """How an endpoint names a request, without secrets."""
    return check_id(mask_in_json(headers.get("x-request-id") or headers.get("request-id")))
