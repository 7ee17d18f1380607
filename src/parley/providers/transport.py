"""JSON over HTTP: one connection pool a provider, a deadline a call, bounded retries, bounded answers."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import aiohttp
import orjson

from parley.errors import ParticipantError, Refused
from parley.providers.keys import redacted

LARGEST = 16 * 2**20  # bytes of one answer
TRIES = 5
LONGEST_PAUSE = 30.0  # seconds between two tries


class Transport:
    """Posts JSON to one endpoint."""

    def __init__(self, url: str, key: str | None = None, deadline: float = 600.0, connections: int = 0) -> None:
        self.url, self.deadline = url, deadline
        self._key, self._connections = key, connections
        self._session: aiohttp.ClientSession | None = None

    async def post(self, body: bytes) -> Any:
        """The endpoint's answer, within the deadline whatever happens on the way."""
        try:
            async with asyncio.timeout(self.deadline):
                for attempt in range(1, TRIES + 1):
                    try:
                        return await self._once(body)
                    except Pause as pause:
                        if attempt == TRIES:
                            raise ParticipantError(f"{self.url}: {pause} ({TRIES} tries)") from None
                        await asyncio.sleep(pause.seconds or min(LONGEST_PAUSE, 0.25 * 2**attempt) * random.uniform(0.5, 1))
        except TimeoutError:
            raise ParticipantError(f"{self.url}: no answer within {self.deadline:g} s") from None

    async def _once(self, body: bytes) -> Any:
        session = self._session or self._open()
        try:
            async with session.post(self.url, data=body) as response:
                length = response.content_length
                if length is not None and length <= LARGEST:
                    answer = await response.read()
                else:
                    answer = await self._bounded(response)
                if response.status != 200:
                    raise self._failure(response, answer)
        except (aiohttp.ClientError, OSError) as broken:
            raise Pause(str(broken) or type(broken).__name__) from None
        if self._key and self._key.encode() in answer:
            answer = answer.replace(self._key.encode(), b"[key]")
        return parsed(answer, self.url)

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

    async def _bounded(self, response: aiohttp.ClientResponse) -> bytes:
        parts, size = [], 0
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            if size > LARGEST:
                raise ParticipantError(f"{self.url}: the answer is larger than {LARGEST >> 20} MB")
        return b"".join(parts)

    def _failure(self, response: aiohttp.ClientResponse, answer: bytes) -> Exception:
        said = redacted(answer[:500].decode("utf-8", "replace")).strip()
        fault = f"HTTP {response.status}" + (f": {said}" if said else "")
        if response.status in (408, 409, 425, 429) or response.status >= 500:
            return Pause(fault, retry_after(response.headers.get("Retry-After", "")))
        remedy = {401: "check the key", 403: "check the key", 404: "check the model's name and base_url"}
        hint = remedy.get(response.status)
        return Refused(f"{self.url}: {fault}" + (f" ({hint})" if hint else ""))

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
    """The seconds that an endpoint asks to wait, within reason; 0 where it does not say."""
    try:
        return min(LONGEST_PAUSE, max(0.0, float(header)))
    except ValueError:
        return 0.0


def parsed(answer: bytes, url: str) -> Any:
    """The JSON of an answer; lone surrogates and other oddities of real endpoints included."""
    try:
        return orjson.loads(answer)
    except orjson.JSONDecodeError:
        try:
            return json.loads(answer.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            raise Pause(f"the answer is not JSON: {answer[:80]!r}") from None
