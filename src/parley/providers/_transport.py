"""JSON over HTTP: connections shared by all models of a run, a deadline a call, bounded retries,
bounded answers."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from parley.errors import FaultKind, Filtered, ParticipantError, Refused, Rejected
from parley.match.protocol import Call
from parley.providers._backoff import Patience, Pause, patience_with, patient, usual
from parley.providers._connections import connection_fault, let_go, proxy_for, shared_connector
from parley.providers._error_bodies import LOOKED_AT, error_in, error_of, parsed, wait_in
from parley.providers._secrets import keep_secret, redacted, scrubbed
from parley.tables import shorten

LARGEST = 16 * 2**20  # bytes of one answer
TRIES = 5
CONNECT = 15.0  # seconds to reach the endpoint
LIMITED = {429, 529}  # too many at once, says the endpoint
# somebody between gave up waiting: the model may have answered, and be paid
UNSURE = {408, 504, 524}
PASSING = {408, 409, 425, 429}  # what may be otherwise next time, besides everything from 500 on
# said with status 429, but does not pass
SPENT = re.compile(r"insufficient_quota|billing_hard_limit")
# what speaks against the model itself, and not against one request
FINAL: dict[int, tuple[FaultKind, str]] = {
    401: ("key", "check the key"),
    402: ("credit", "check the account's credit"),
    403: ("key", "check the key"),
    404: ("address", "check the model's name and base_url"),
    429: ("credit", "check the account's credit"),
}
# addresses in which the version is missing before what a provider appends
BARE = ("/chat/completions", "/completions", "/responses", "/messages")


class Term:
    """When a call must be over: its deadline after its first request has left, however many
    follow."""

    __slots__ = ("ends",)

    def __init__(self) -> None:
        self.ends = 0.0  # not yet known


class Body(aiohttp.BytesPayload):
    """The body of a request, and whether it has left: before that, nobody can have been paid for
    it."""

    left = False

    async def write(self, writer: AbstractStreamWriter) -> None:  # what aiohttp before 3.12 calls
        self.left = True
        await super().write(writer)

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        self.left = True
        await super().write_with_length(writer, content_length)


class Transport:
    """Posts JSON to one endpoint."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        deadline: float = 600.0,
        place: str = "",
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
            raise ValueError("the key holds characters that no header can carry")
        self.url, self.deadline, self.timeout, self._idempotency = (
            url,
            deadline,
            timeout,
            idempotency_header,
        )
        # whether an error refuses a request for what is said in it
        self._scope, self._filtered = scope, filtered
        self.place = place or redacted(url.partition("?")[0])  # how errors name the endpoint
        self._headers = {"Accept-Encoding": "identity", **(headers or {})}
        if key:
            keep_secret(key)
            self._headers[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
        # One account and model at one host: limits hold for that, and one model that is down says
        # nothing of others.
        self._endpoint = (
            f"{scope} {'/'.join(url.split('/', 3)[:3])} "
            f"{blake2b((key or '').encode(), digest_size=8).hexdigest()}"
        )
        self._patience: Patience | None = None
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # to which the session belongs
        self._address: Any = url  # taken apart once, when the first request is sent

    async def post(self, body: bytes, call: Call, term: Term | None = None) -> Any:
        """The endpoint's answer, within the deadline from when the request first leaves, whatever
        happens on the way.

        Several requests of one call share its term.
        """
        session = self._session
        if session is None or self._loop is not asyncio.get_running_loop():
            left = self._drop()
            session = self._open()
            if left is not None:
                await left.close()
        assert self._patience is not None
        patience, tries, term = self._patience, 0, term or Term()
        last: Pause | None = None
        # the same for every try
        headers = {self._idempotency: uuid4().hex} if self._idempotency else None
        while True:
            if term.ends and time.monotonic() >= term.ends:
                raise self._late(last)
            rest = term.ends - time.monotonic() if term.ends else self.deadline
            place, waited = await self._turn(patience, call, rest, last)
            try:
                await call.before_request()
                # The first try has the session's own time limit, which is the deadline.
                seconds = max(1e-3, term.ends + waited - time.monotonic()) if term.ends else None
                term.ends = term.ends + waited if term.ends else time.monotonic() + self.deadline
                answer = await self._once(session, body, headers, seconds)
                patience.well(call)
                return answer
            except (Rejected, Refused) as refused:
                patience.well(call)  # it answers; what it says is another matter
                call.refused(str(refused))
                raise
            except TimeoutError:
                self._broke(
                    patience, call, Pause(f"no answer within {self.deadline:g} s", unsure=True)
                )
                raise self._late(last) from None
            except Pause as pause:
                self._broke(patience, call, pause)
                last = pause
            finally:
                patience.leave(place)
            tries += not last.limited
            if tries == TRIES:
                raise ParticipantError(f"{self.place}: {last} ({tries} tries)", kind=last.kind)
            if not last.limited and not patience.down:
                await patient(
                    min(last.seconds or usual(tries - 1), max(0.0, term.ends - time.monotonic())),
                    call,
                )

    def _broke(self, patience: Patience, call: Call, pause: Pause) -> None:
        """A request brought no answer."""
        patience.trouble(pause, call)
        if not pause.unsure:
            call.refused(str(pause))
            return
        call.lost(str(pause))
        call.notice(f"{self.place}: {pause}: this call may have been paid without an answer")

    async def _turn(
        self, patience: Patience, call: Call, seconds: float, last: Pause | None
    ) -> tuple[int, float]:
        """A place among the calls that the endpoint bears, at the model's pace; and how long that
        took which is not counted.

        Waiting is not counted as long as others are answered. Who has waited for longer than its
        time without that is late.
        """
        uncounted = 0.0
        while True:
            if queued := not patience.clear:
                try:
                    place, waited = await patience.admit(seconds, call)
                except TimeoutError:
                    raise self._late(
                        last or Pause("it was not its turn, and nobody else was answered")
                    ) from None
                uncounted += waited
            else:
                place = patience.enter()
            try:
                if queued:
                    call.check_running()  # the run may have stopped since
                began = time.monotonic()
                await call.wait_for_rate()
                uncounted += time.monotonic() - began
                if not patience.shut(place):
                    return place, uncounted
            except BaseException:
                patience.leave(place)
                raise
            patience.leave(place)

    def _late(self, last: Pause | None) -> ParticipantError:
        before = f" (before that: {last})" if last else ""
        return ParticipantError(
            f"{self.place}: no answer within {self.deadline:g} s{before}",
            kind=last.kind if last else "",
        )

    async def _once(
        self,
        session: aiohttp.ClientSession,
        body: bytes,
        headers: Mapping[str, str] | None,
        seconds: float | None,
    ) -> Any:
        options: dict[str, Any] = {} if seconds is None else {"timeout": self._limits(seconds)}
        if headers:
            options["headers"] = headers
        payload = Body(body, content_type="application/json")
        try:
            # A redirect would carry the prompt elsewhere, or turn into another method: it is
            # reported, not followed.
            async with session.post(
                self._address, data=payload, allow_redirects=False, **options
            ) as response:
                answer = await self._whole(response)
        except aiohttp.ConnectionTimeoutError:
            raise Pause("cannot connect: no answer in time", kind="unreachable") from None
        except aiohttp.SocketTimeoutError:
            raise Pause(f"no word for {self.timeout:g} s", unsure=True) from None
        except aiohttp.InvalidURL:
            raise Refused(f"{self.place} is no address that can be asked", kind="address") from None
        except aiohttp.ClientConnectorError as broken:
            raise Pause(f"cannot connect: {connection_fault(broken)}", kind="unreachable") from None
        except TimeoutError:
            if payload.left:
                raise
            raise Pause("it could not be reached in time", kind="unreachable") from None
        except (aiohttp.ClientError, OSError) as broken:
            raise Pause(
                self._unnamed(broken) or type(broken).__name__, unsure=payload.left
            ) from None
        if not 200 <= response.status < 300:
            said = answer[:LOOKED_AT].decode("utf-8", "replace").strip()
            raise self._failure(
                response.status,
                said,
                wait_in(response.headers, said),
                response.headers.get("Location", ""),
            )
        found = scrubbed(parsed(answer))
        if error := error_of(found):  # some say errors with status 200
            status, said, whole = error_in(error)
            raise self._failure(status, said, wait_in(response.headers, whole), whole=whole)
        return found

    def _open(self) -> aiohttp.ClientSession:
        self._loop = asyncio.get_running_loop()
        with suppress(ValueError):  # one that cannot be read is refused where it is asked
            self._address = URL(self.url)
        self._session = aiohttp.ClientSession(
            connector=shared_connector(),
            connector_owner=False,
            timeout=self._limits(self.deadline),
            headers=self._headers,
            proxy=proxy_for(self.url),
        )
        self._patience = patience_with(self._endpoint, self.place, self._scope)
        return self._session

    def _limits(self, seconds: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT, sock_read=self.timeout)

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        """The body of an answer, if it is not too large; a packed one may be larger than it
        says."""
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

    def _unnamed(self, broken: Exception) -> str:
        """What a fault says, without any key, and with the address as it was written."""
        said, host = (
            redacted(str(broken)).replace(self.url, self.place),
            urlsplit(self.url).hostname or "",
        )
        return said if host in self.place else said.replace(host, "[host]")

    def _refuse_large(self, size: int) -> None:
        if size > LARGEST:
            raise ParticipantError(f"{self.place}: the answer is larger than {LARGEST >> 20} MB")

    def _failure(
        self, status: int, said: str, wait: float = 0, location: str = "", whole: str = ""
    ) -> Exception:
        """What an error means: try again, or give up and say what to look at. `whole` is all of it
        where `said` is a part."""
        whole = whole or said
        fault = (f"HTTP {status}" if status else "the endpoint says an error") + (
            f": {redacted(said)[:500]}" if said else ""
        )
        if (status in PASSING or status >= 500) and not SPENT.search(whole):
            return Pause(
                fault, wait, limited=status in LIMITED or bool(wait), unsure=status in UNSURE
            )
        if self._filtered(status, whole):
            return Filtered(f"{self.place}: {fault}")
        kind: FaultKind
        if location:
            kind, advice = (
                "address",
                f"it redirects to {shorten(redacted(location.partition('?')[0]), 200)}",
            )
        elif status in FINAL:
            kind, advice = FINAL[status]
        else:  # it may lie in this one request: too long, say
            return Rejected(f"{self.place}: {fault}", answer=fault)
        bare = kind == "address" and urlsplit(self.url).path in BARE
        hint = "did you leave out /v1 at the end of base_url?" if bare else ""
        return Refused(f"{self.place}: {fault} ({advice})", kind=kind, hint=hint)

    def _drop(self) -> aiohttp.TCPConnector | None:
        """Leave the session behind, maybe of a loop that is over; its connections where they are to
        be closed from here."""
        if self._session is None or self._loop is None:
            return None
        self._session.detach()
        self._session, connector = None, let_go(self._loop)
        return (
            connector
            if self._loop.is_closed() or self._loop is asyncio.get_running_loop()
            else None
        )

    async def close(self) -> None:
        if (left := self._drop()) is not None:
            await left.close()
