"""JSON over HTTP: connections shared by all models of a run, a deadline a call, bounded retries, bounded answers."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import mktime_tz, parsedate_tz
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from uuid import uuid4
from weakref import WeakKeyDictionary

import aiohttp
import orjson
from yarl import URL

from parley.errors import Filtered, ParticipantError, Refused, Rejected
from parley.expect import clip
from parley.providers.keys import keep_secret, redacted, scrubbed
from parley.providers.patience import LONGEST_PAUSE, NOTICE, Patience, Pause, patience_with, patient, usual
from parley.providers.spending import LOST, SPEND

LARGEST = 16 * 2**20  # bytes of one answer
LOOKED_AT = 50_000  # characters of an error, of which a few hundred are shown
TRIES = 5
MOST_WAITS = 12  # tries that were only told to wait
CONNECT = 15.0  # seconds to reach the endpoint
LIMITED = {429, 529}  # too many at once, says the endpoint
PASSING = {408, 409, 425, 429}  # what may be otherwise next time, besides everything from 500 on
LIMITED_WORDS = re.compile(r"rate.?limit|resource.?exhausted|too.?many.?requests", re.IGNORECASE)
PASSING_WORDS = re.compile(r"overload|server.?error|time.?out|unavailable", re.IGNORECASE)
RETRY_DELAY = re.compile(r"""retryDelay["']\s*:\s*["'](\d{1,9}(?:\.\d{1,9})?)s""")  # how Google says how long to wait
SPENT = re.compile(r"insufficient_quota|billing_hard_limit")  # said with status 429, but does not pass
HINTS = {
    401: "check the key",
    402: "check the account's credit",
    403: "check the key",
    404: "check the model's name and base_url",
    429: "check the account's credit",
}


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
        self.url, self.deadline, self.timeout, self._idempotency = url, deadline, timeout, idempotency_header
        self._filtered = filtered  # whether an error refuses a request for what is said in it
        self.place = place or redacted(url.partition("?")[0])  # how errors name the endpoint
        self._headers = {"Accept-Encoding": "identity", **(headers or {})}
        if key:
            keep_secret(key)
            self._headers[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
        # One account and model at one host: limits hold for that, and one model that is down says nothing of others.
        self._endpoint = f"{scope} {'/'.join(url.split('/', 3)[:3])} {blake2b((key or '').encode(), digest_size=8).hexdigest()}"
        self._patience: Patience | None = None
        self._session: aiohttp.ClientSession | None = None
        self._address: Any = url  # taken apart once, when the first request is sent

    async def post(self, body: bytes) -> Any:
        """The endpoint's answer, within the deadline whatever happens on the way."""
        session = self._session or self._open()
        assert self._patience is not None
        patience, fault, ends, tries, waits = self._patience, "", time.monotonic() + self.deadline, 0, 0
        headers = {self._idempotency: uuid4().hex} if self._idempotency else None  # the same for every try
        while True:
            try:
                if not patience.clear:
                    await patience.admit(ends)
                    fault = fault or f"waited for {self.place} to bear more"
                SPEND.get()()
                probe = patience.enter()
                try:
                    # The first try has the session's own time limit, which is the deadline.
                    answer = await self._once(session, body, headers, None if not fault else ends - time.monotonic())
                    patience.well()
                    return answer
                except (Rejected, Refused):
                    patience.well()  # it answers; what it says is another matter
                    raise
                finally:
                    patience.leave(probe)
            except Pause as pause:
                fault = redacted(str(pause))
                patience.trouble(pause)
                if pause.unsure:
                    LOST.get()()
                    NOTICE.get()(f"{self.place}: {fault}: this call may have been paid without an answer")
                tries, waits = tries + (not pause.limited), waits + pause.limited
                if tries == TRIES or waits == MOST_WAITS:
                    raise ParticipantError(f"{self.place}: {fault} ({tries + waits} tries)") from None
                if not pause.limited and not patience.down:
                    await patient(min(pause.seconds or usual(tries - 1), max(0.0, ends - time.monotonic())))
            except TimeoutError:
                ends = 0.0
            if time.monotonic() >= ends:
                before = f" (before that: {fault})" if fault else ""
                raise ParticipantError(f"{self.place}: no answer within {self.deadline:g} s{before}")

    async def _once(
        self, session: aiohttp.ClientSession, body: bytes, headers: Mapping[str, str] | None, seconds: float | None
    ) -> Any:
        options: dict[str, Any] = {} if seconds is None else {"timeout": self._limits(seconds)}
        if headers:
            options["headers"] = headers
        try:
            # A redirect would carry the prompt elsewhere, or turn into another method: it is reported, not followed.
            payload = aiohttp.BytesPayload(body, content_type="application/json")
            async with session.post(self._address, data=payload, allow_redirects=False, **options) as response:
                answer = await self._whole(response)
        except aiohttp.ConnectionTimeoutError as broken:
            raise Pause(self._unnamed(broken)) from None
        except aiohttp.SocketTimeoutError:
            raise Pause(f"no word for {self.timeout:g} s", unsure=True) from None
        except aiohttp.InvalidURL:
            raise Refused(f"{self.place} is no address that can be asked") from None
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError) as broken:
            reached = not isinstance(broken, aiohttp.ClientConnectorError)
            raise Pause(self._unnamed(broken) or type(broken).__name__, unsure=reached) from None
        if not 200 <= response.status < 300:
            said = answer[:LOOKED_AT].decode("utf-8", "replace").strip()
            raise self._failure(response.status, said, wait_in(response.headers, said), response.headers.get("Location", ""))
        found = scrubbed(parsed(answer))
        if error := error_of(found):  # some say errors with status 200
            status, said, whole = error_in(error)
            raise self._failure(status, said, wait_in(response.headers, whole), whole=whole)
        return found

    def _open(self) -> aiohttp.ClientSession:
        with suppress(ValueError):  # one that cannot be read is refused where it is asked
            self._address = URL(self.url)
        self._session = aiohttp.ClientSession(
            connector=shared_connector(),
            connector_owner=False,
            timeout=self._limits(self.deadline),
            headers=self._headers,
            proxy=proxy_for(self.url),
        )
        self._patience = patience_with(self._endpoint, self.place)
        return self._session

    def _limits(self, seconds: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT, sock_read=self.timeout)

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        """The body of an answer, if it is not too large; a packed one may be larger than it says."""
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
        """What a fault says, with the address as it was written."""
        said, host = str(broken).replace(self.url, self.place), urlsplit(self.url).hostname or ""
        return said if host in self.place else said.replace(host, "[host]")

    def _refuse_large(self, size: int) -> None:
        if size > LARGEST:
            raise ParticipantError(f"{self.place}: the answer is larger than {LARGEST >> 20} MB")

    def _failure(self, status: int, said: str, wait: float = 0, location: str = "", whole: str = "") -> Exception:
        """What an error means: try again, or give up and say what to look at. `whole` is all of it where `said` is a part."""
        whole = whole or said
        fault = (f"HTTP {status}" if status else "the endpoint says an error") + (f": {redacted(said)[:500]}" if said else "")
        if (status in PASSING or status >= 500) and not SPENT.search(whole):
            return Pause(fault, wait, limited=status in LIMITED or bool(wait))
        if self._filtered(status, whole):
            return Filtered(f"{self.place}: {fault}")
        hint = f"it wants to be asked at {clip(redacted(location.partition('?')[0]), 200)}" if location else HINTS.get(status)
        # What speaks against the model is final; what may lie in this one request (too long, filtered) is not.
        return Refused(f"{self.place}: {fault} ({hint})") if hint else Rejected(f"{self.place}: {fault}")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            await let_go()


class Shared:
    """The connections of one event loop, and how many transports use them."""

    def __init__(self) -> None:
        self.connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        self.users = 0


SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, Shared] = WeakKeyDictionary()


def shared_connector() -> aiohttp.TCPConnector:
    """One pool for all models of a loop: several of them often stand behind one address."""
    loop = asyncio.get_running_loop()
    shared = SHARED.get(loop) or SHARED.setdefault(loop, Shared())
    shared.users += 1
    return shared.connector


async def let_go() -> None:
    """The last transport closes the connections."""
    loop = asyncio.get_running_loop()
    shared = SHARED[loop]
    shared.users -= 1
    if not shared.users:
        del SHARED[loop]
        await shared.connector.close()


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address, looked up once: for every request it would cost more than the call."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def wait_in(headers: Mapping[str, str], said: str) -> float:
    """The seconds that an answer asks to wait: in its headers, the most exact first, else in what it says."""
    if exact := re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", headers.get("Retry-After-Ms", "").strip()):
        return retry_after(str(float(exact[0]) / 1000))
    found = RETRY_DELAY.search(said)
    return retry_after(headers.get("Retry-After") or (found[1] if found else ""))


def retry_after(header: str) -> float:
    """The seconds that an endpoint asks to wait, given as such or as a date, within reason; 0 where it does not say."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_tz(header)
            seconds = mktime_tz(date) - time.time() if date else 0.0
        except (ValueError, OverflowError, TypeError, IndexError):  # a date that no calendar has
            seconds = 0.0
    return min(LONGEST_PAUSE, max(0.0, seconds))


def error_of(answer: Any) -> Any:
    """The error in a body that came with status 200, if it is one."""
    if not isinstance(answer, dict) or answer.get("choices"):
        return None
    return answer if answer.get("object") == "error" else answer.get("error")


def error_in(error: Any) -> tuple[int, str, str]:
    """The status that an error in a body stands for, 0 where it does not say; its words, and all of it."""
    if not isinstance(error, dict):
        return 0, clip(error, LOOKED_AT), ""
    whole, said = clip(error, LOOKED_AT), clip(error.get("message") or error, LOOKED_AT)
    code = clip(error.get("code") or "")
    if re.fullmatch(r"[45]\d\d", code):
        return int(code), said, whole
    named = f"{code} {clip(error.get('type'))} {clip(error.get('status'))}"
    return 429 if LIMITED_WORDS.search(named) else 503 if PASSING_WORDS.search(named) else 0, said, whole


def parsed(answer: bytes) -> Any:
    """The JSON of an answer; lone surrogates, raw control characters and broken UTF-8 of real endpoints included."""
    try:
        return orjson.loads(answer)
    except orjson.JSONDecodeError:
        try:
            found = json.loads(answer.decode("utf-8-sig", "replace"), strict=False)
            return json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            said = redacted(answer[:LOOKED_AT].decode("utf-8", "replace"))
            raise Pause(f"the answer is not JSON: {said[:80]!r}" if answer else "the answer is empty") from None
