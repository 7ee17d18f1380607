"""JSON over HTTP: connections shared by all models of a run, a deadline a call, bounded retries, bounded answers."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from email.utils import mktime_tz, parsedate_tz
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import aiohttp
import orjson
from yarl import URL

from parley.errors import ParticipantError, Refused, Rejected
from parley.expect import clip
from parley.providers.keys import keep_secret, redacted, scrubbed

LARGEST = 16 * 2**20  # bytes of one answer
LOOKED_AT = 50_000  # characters of an error, of which a few hundred are shown
TRIES = 5
FIRST_PAUSE = 0.5  # seconds before the second try; each further pause is twice as long
LONGEST_PAUSE = 30.0
CONNECT = 15.0  # seconds to reach the endpoint
PASSING = {408, 409, 425, 429}  # what may be otherwise next time, besides everything from 500 on
PASSING_WORDS = re.compile(r"rate.?limit|overload|server.?error|time.?out|unavailable", re.IGNORECASE)
SPENT = re.compile(r"insufficient_quota|billing_hard_limit")  # said with status 429, but does not pass
HINTS = {
    401: "check the key",
    402: "check the account's credit",
    403: "check the key",
    404: "check the model's name and base_url",
    429: "check the account's credit",
}


AGAIN: ContextVar[Callable[[], None]] = ContextVar("again", default=lambda: None)  # raises once nothing new may be asked


class Transport:
    """Posts JSON to one endpoint."""

    def __init__(self, url: str, key: str | None = None, deadline: float = 600.0, place: str = "") -> None:
        if deadline <= 0:
            raise ValueError(f"deadline must be more than 0 seconds, not {deadline:g}")
        if key is not None and not (key := key.strip()).isprintable():
            raise ValueError("the key holds characters that no header can carry")
        self.url, self.deadline = url, deadline
        self.place = place or redacted(url.partition("?")[0])  # how errors name the endpoint
        self._key = key
        if key:
            keep_secret(key)
        self._session: aiohttp.ClientSession | None = None
        self._address: Any = url  # taken apart once, when the first request is sent

    async def post(self, body: bytes) -> Any:
        """The endpoint's answer, within the deadline whatever happens on the way."""
        fault, ends = "", time.monotonic() + self.deadline
        for attempt in range(TRIES):
            try:
                # The first try has the session's own time limit, which is the deadline.
                return await self._once(body, None if attempt == 0 else ends - time.monotonic())
            except Pause as pause:
                fault = redacted(str(pause))
                if attempt < TRIES - 1:
                    usual = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1)
                    await patient(min(pause.seconds or usual, max(0.0, ends - time.monotonic())))
            except TimeoutError:
                ends = 0.0
            if time.monotonic() >= ends:
                before = f" (before that: {fault})" if fault else ""
                raise ParticipantError(f"{self.place}: no answer within {self.deadline:g} s{before}")
        raise ParticipantError(f"{self.place}: {fault} ({TRIES} tries)")

    async def _once(self, body: bytes, seconds: float | None) -> Any:
        session = self._session or self._open()
        options: dict[str, Any] = (
            {} if seconds is None else {"timeout": aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT)}
        )
        try:
            # A redirect would carry the prompt elsewhere, or turn into another method: it is reported, not followed.
            payload = aiohttp.BytesPayload(body, content_type="application/json")
            async with session.post(self._address, data=payload, allow_redirects=False, **options) as response:
                answer = await self._whole(response)
        except aiohttp.ConnectionTimeoutError as broken:
            raise Pause(self._unnamed(broken)) from None
        except aiohttp.InvalidURL:
            raise Refused(f"{self.place} is no address that can be asked") from None
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError) as broken:
            raise Pause(self._unnamed(broken) or type(broken).__name__) from None
        if not 200 <= response.status < 300:
            said = answer[:LOOKED_AT].decode("utf-8", "replace").strip()
            wait = retry_after(response.headers.get("Retry-After", ""))
            raise self._failure(response.status, said, wait, response.headers.get("Location", ""))
        found = scrubbed(parsed(answer))
        if isinstance(found, dict) and found.get("error") and not found.get("choices"):  # some say errors with status 200
            status, said = error_in(found["error"])
            raise self._failure(status, said)
        return found

    def _open(self) -> aiohttp.ClientSession:
        headers = {"Accept-Encoding": "identity"}
        with suppress(ValueError):  # one that cannot be read is refused where it is asked
            self._address = URL(self.url)
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._session = aiohttp.ClientSession(
            connector=shared_connector(),
            connector_owner=False,
            timeout=aiohttp.ClientTimeout(total=self.deadline, sock_connect=CONNECT),
            headers=headers,
            proxy=proxy_for(self.url),
        )
        return self._session

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

    def _failure(self, status: int, said: str, wait: float = 0, location: str = "") -> Exception:
        """What an error means: try again, or give up and say what to look at."""
        fault = (f"HTTP {status}" if status else "the endpoint says an error") + (f": {redacted(said)[:500]}" if said else "")
        if (status in PASSING or status >= 500) and not SPENT.search(said):
            return Pause(fault, wait)
        hint = f"it wants to be asked at {clip(redacted(location.partition('?')[0]), 200)}" if location else HINTS.get(status)
        # What speaks against the model is final; what may lie in this one request (too long, filtered) is not.
        return Refused(f"{self.place}: {fault} ({hint})") if hint else Rejected(f"{self.place}: {fault}")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            await let_go()


async def patient(seconds: float) -> None:
    """Wait before a further try, unless none is wanted any more."""
    ends = time.monotonic() + seconds
    while (rest := ends - time.monotonic()) > 0:
        await asyncio.sleep(min(rest, 0.5))
        AGAIN.get()()
    AGAIN.get()()


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


class Pause(Exception):
    """A fault that may pass: try again after a while."""

    def __init__(self, fault: str, seconds: float = 0) -> None:
        super().__init__(fault)
        self.seconds = seconds


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


def error_in(error: Any) -> tuple[int, str]:
    """The status that an error in a body stands for, 0 where it does not say, and its words."""
    if not isinstance(error, dict):
        return 0, clip(error, LOOKED_AT)
    said = clip(error.get("message") or error, LOOKED_AT)
    code = clip(error.get("code") or "")
    if re.fullmatch(r"[45]\d\d", code):
        return int(code), said
    return 503 if PASSING_WORDS.search(f"{code} {clip(error.get('type'))}") else 0, said


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
