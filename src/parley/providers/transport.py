"""JSON over HTTP: one connection pool a provider, a deadline a call, bounded retries, bounded answers."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from email.utils import mktime_tz, parsedate_tz
from typing import Any

import aiohttp
import orjson

from parley.errors import ParticipantError, Refused
from parley.providers.keys import SHORTEST, redacted

LARGEST = 16 * 2**20  # bytes of one answer
TRIES = 5
FIRST_PAUSE = 0.5  # seconds before the second try; each further pause is twice as long
LONGEST_PAUSE = 30.0
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


class Transport:
    """Posts JSON to one endpoint."""

    def __init__(self, url: str, key: str | None = None, deadline: float = 600.0, connections: int = 0) -> None:
        if deadline <= 0:
            raise ValueError(f"deadline must be more than 0 seconds, not {deadline:g}")
        if key is not None and not (key := key.strip()).isprintable():
            raise ValueError("the key holds characters that no header can carry")
        self.url, self.deadline = url, deadline
        self.place = redacted(url.partition("?")[0])  # how errors name the endpoint
        self._key, self._connections = key, connections
        self._secrets = {form.encode() for form in (key, key.replace("/", "\\/"))} if key and len(key) >= SHORTEST else set()
        self._session: aiohttp.ClientSession | None = None

    async def post(self, body: bytes) -> Any:
        """The endpoint's answer, within the deadline whatever happens on the way."""
        fault = ""
        try:
            async with asyncio.timeout(self.deadline):
                for attempt in range(TRIES):
                    try:
                        return await self._once(body)
                    except Pause as pause:
                        fault = redacted(str(pause))
                        if attempt < TRIES - 1:
                            usual = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1)
                            await asyncio.sleep(pause.seconds or usual)
        except TimeoutError:
            before = f" (before that: {fault})" if fault else ""
            raise ParticipantError(f"{self.place}: no answer within {self.deadline:g} s{before}") from None
        raise ParticipantError(f"{self.place}: {fault} ({TRIES} tries)")

    async def _once(self, body: bytes) -> Any:
        session = self._session or self._open()
        try:
            # A redirect would carry the prompt elsewhere, or turn into another method: it is reported, not followed.
            async with session.post(self.url, data=body, allow_redirects=False) as response:
                answer = await self._whole(response)
        except aiohttp.InvalidURL:
            raise Refused(f"{self.place} is no address that can be asked") from None
        except (aiohttp.ClientError, OSError) as broken:
            raise Pause(str(broken).replace(self.url, self.place) or type(broken).__name__) from None
        for secret in self._secrets:
            answer = answer.replace(secret, b"[key]")
        if not 200 <= response.status < 300:
            said = answer.decode("utf-8", "replace").strip()
            wait = retry_after(response.headers.get("Retry-After", ""))
            raise self._failure(response.status, said, wait, response.headers.get("Location", ""))
        found = parsed(answer)
        if isinstance(found, dict) and found.get("error") and not found.get("choices"):  # some say errors with status 200
            status, said = error_in(found["error"])
            raise self._failure(status, said)
        return found

    def _open(self) -> aiohttp.ClientSession:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=60),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=15),
            headers=headers,
            trust_env=True,
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

    def _refuse_large(self, size: int) -> None:
        if size > LARGEST:
            raise ParticipantError(f"{self.place}: the answer is larger than {LARGEST >> 20} MB")

    def _failure(self, status: int, said: str, wait: float = 0, location: str = "") -> Exception:
        """What an error means: try again, or give up and say what to look at."""
        fault = (f"HTTP {status}" if status else "the endpoint says an error") + (f": {redacted(said)[:500]}" if said else "")
        if (status in PASSING or status >= 500) and not SPENT.search(said):
            return Pause(fault, wait)
        hint = f"it wants to be asked at {redacted(location.partition('?')[0])}" if location else HINTS.get(status)
        return Refused(f"{self.place}: {fault}" + (f" ({hint})" if hint else ""))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


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
        date = parsedate_tz(header)
        seconds = mktime_tz(date) - time.time() if date else 0.0
    return min(LONGEST_PAUSE, max(0.0, seconds))


def error_in(error: Any) -> tuple[int, str]:
    """The status that an error in a body stands for, 0 where it does not say, and its words."""
    if not isinstance(error, dict):
        return 0, str(error)
    said = str(error.get("message") or error)
    code = str(error.get("code") or "")
    if re.fullmatch(r"[45]\d\d", code):
        return int(code), said
    return 503 if PASSING_WORDS.search(f"{code} {error.get('type')}") else 0, said


def parsed(answer: bytes) -> Any:
    """The JSON of an answer; lone surrogates, raw control characters and broken UTF-8 of real endpoints included."""
    try:
        return orjson.loads(answer)
    except orjson.JSONDecodeError:
        try:
            found = json.loads(answer.decode("utf-8-sig", "replace"), strict=False)
            return json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise Pause(f"the answer is not JSON: {answer[:80]!r}" if answer else "the answer is empty") from None
