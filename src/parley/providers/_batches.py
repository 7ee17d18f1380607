"""The batch interface of a provider: many requests in one batch, whose answers come hours later at
a lower price."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from parley.errors import ParticipantError, Refused, Rejected
from parley.providers._endpoint_health import Retryable
from parley.providers._error_bodies import objects_in_list, parse_answer
from parley.providers._transport import LARGEST, EndpointAnswer, Transport
from parley.tables import shorten

SHORT = 120.0  # seconds for a request with a small answer
LONG = 3600.0  # seconds to send or fetch a file
MEGABYTE = 10**6
BATCHES = "/batches"  # the path of the batches of an account
MISSING = (404, 405, 501)  # how an endpoint without a batch interface answers
SKEW = 3600.0  # seconds by which the clocks of this machine and of the provider may differ
MOST_PAGES = 50  # of the list of batches


class BatchRequest(NamedTuple):
    """One request of a batch."""

    custom_id: str
    body: bytes  # the same as of an ordinary call


class BatchStatus(NamedTuple):
    """How far a batch has come."""

    id: str
    ended: bool
    done: int  # requests with an outcome
    state: str  # as the provider calls it
    fault: str = ""  # why the provider did not accept the batch as a whole
    too_large: bool = False  # the account may not queue as many tokens now
    files: tuple[str, ...] = ()  # where the results are


class BatchLine(NamedTuple):
    """One result: an answer as an ordinary call gets it, or the error that it would raise."""

    custom_id: str
    answer: EndpointAnswer | None
    fault: Exception | None = None


class BatchPending(Exception):
    """Whether a batch was created is unknown until another one has ended."""


class BatchClient(ABC):
    """Sends batches to one endpoint and fetches their results. A method sends each request once and
    raises `Retryable` if it may succeed later."""

    most_requests: ClassVar[int]
    most_bytes: ClassVar[int]
    overhead: ClassVar[int] = 200  # bytes that a request takes in a batch besides its body

    def __init__(
        self,
        transport: Transport,
        address: Callable[[str], str],
        path: str,
        check_answer: Callable[[Any], Any],
        place: str,
    ) -> None:
        """`address` completes a path; `path` is that of ordinary calls. `check_answer` raises an
        error for an answer without a reply. Errors name the endpoint as `place`."""
        self._transport, self._address, self._path = transport, address, path
        self._check_answer = check_answer
        self.place = place

    async def check_interface(self) -> None:
        """Raise `Refused` if the endpoint has no batch interface, or cannot be reached; other
        problems show later."""
        try:
            await self._get(BATCHES, limit="1")
        except (ParticipantError, Retryable) as fault:
            if fault.status in MISSING:
                raise Refused(
                    f"the endpoint has no batch API ({self.place} answers HTTP {fault.status})"
                ) from None
            if fault.kind == "unreachable":
                raise Refused(f"{self.place}: {fault}", kind=fault.kind) from None

    @abstractmethod
    async def upload(self, requests: Sequence[BatchRequest]) -> Any:
        """Everything that can be done before the batch is created; repeating it costs nothing."""

    @abstractmethod
    async def create(self, uid: str, uploaded: Any) -> str:
        """Create a batch that carries this mark, and return its id. If this fails with an unsure
        error, the batch may exist."""

    @abstractmethod
    async def find(self, uid: str, requests: int, since: float, known: Sequence[str]) -> str | None:
        """The id of the batch with this mark, created after `since`; None if there is none. `known`
        are batches with other marks."""

    @abstractmethod
    async def poll(self, batch: str) -> BatchStatus:
        """How far a batch has come."""

    @abstractmethod
    def read_line(self, line: Mapping[str, Any]) -> BatchLine | None:
        """The result in a parsed line; None if it has none."""

    async def results(self, status: BatchStatus) -> AsyncIterator[BatchLine | None]:
        """The results of a batch that has ended, in any order; None for a line that is not one."""
        for file in status.files:
            async for line in self._results_in(file):
                yield line

    async def _results_in(self, path: str) -> AsyncIterator[BatchLine | None]:
        """The results in a file."""
        async for line in self._lines(path):
            try:
                found = parse_answer(line)
            except Retryable:
                found = None
            yield self.read_line(found) if isinstance(found, dict) else None

    async def _lines(self, path: str) -> AsyncIterator[bytes]:
        """The lines of a file. One that is larger than an answer may be is cut off."""
        line, url = bytearray(), self._address(path)
        async with self._transport.stream("GET", url, LONG, self.place) as response:
            async for part in response.content.iter_any():
                for number, piece in enumerate(part.split(b"\n")):
                    if number:  # the line before has ended
                        if line.strip():
                            yield bytes(line)
                        line.clear()
                    line += piece[: LARGEST + 1 - len(line)]
        if line.strip():
            yield bytes(line)

    def read_answer(
        self, custom_id: str, status: int, body: Any, request_id: Any = None
    ) -> BatchLine:
        """The result for an answer with this status."""
        try:
            answer = self._transport.read_result(status, body, request_id)
            self._check_answer(answer.content)
        except (ParticipantError, Retryable) as fault:
            return BatchLine(custom_id, None, fault)
        return BatchLine(custom_id, answer)

    async def _get(self, path: str, **params: str) -> dict[str, Any]:
        return await self._fetch("GET", path, SHORT, params=params)

    async def _post_json(self, path: str, body: bytes, seconds: float = SHORT) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        return await self._fetch("POST", path, seconds, data=body, headers=headers)

    async def _fetch(
        self, method: str, path: str, seconds: float, **options: Any
    ) -> dict[str, Any]:
        """The object that the endpoint answers with."""
        try:
            url = self._address(path)
            found = await self._transport.fetch(method, url, seconds, self.place, **options)
        except (Refused, Rejected):
            raise
        except ParticipantError as large:  # the answer cannot be read
            raise Retryable(str(large), unsure=True) from None
        if not isinstance(found, dict):
            raise Retryable(f"the answer is not a JSON object: {shorten(found, 80)}", unsure=True)
        return found

    def _batches_in(self, page: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The batches of a page of the list. Another answer does not mean that there are none."""
        listed = page.get("data", False)
        if listed is not None and not isinstance(listed, list):
            raise Retryable(f"the answer is not a list of batches: {shorten(page, 80)}")
        return objects_in_list(listed)

    def _id_in(self, found: Mapping[str, Any]) -> str:
        """The id in an answer, which becomes part of an address."""
        name = found.get("id")
        if not isinstance(name, str) or not name or not is_plain(name):
            raise Retryable(f"the answer has no valid id: {shorten(found, 80)}", unsure=True)
        return name


def is_plain(name: str) -> bool:
    """Whether a name can stand in an address as it is."""
    signs = name.isascii() and all(sign.isalnum() or sign in "-_." for sign in name)
    return signs and name not in (".", "..")


def split_requests(
    sizes: Sequence[int], most_requests: int, most_bytes: int
) -> list[tuple[int, int]]:
    """Consecutive ranges of requests, each within the limits of a batch; a request that is too
    large stands alone."""
    parts, start, size = list[tuple[int, int]](), 0, 0
    for at, each in enumerate(sizes):
        if at > start and (at - start >= most_requests or size + each > most_bytes):
            parts.append((start, at))
            start, size = at, 0
        size += each
    return [*parts, (start, len(sizes))] if sizes else []


def count_in(counts: Any, *names: str) -> int:
    """The sum of some counts in an answer; anything but a whole number counts as 0."""
    found = [counts.get(name) for name in names] if isinstance(counts, dict) else []
    numbers = [each for each in found if isinstance(each, int) and not isinstance(each, bool)]
    return sum(each for each in numbers if each > 0)


def seconds_in(moment: Any) -> float | None:
    """A point in time in seconds since 1970, from a number or an ISO text; None if it is none."""
    with suppress(ValueError, TypeError, OverflowError):
        if isinstance(moment, int | float) and not isinstance(moment, bool):
            return float(moment)
        return datetime.fromisoformat(moment).timestamp()
    return None
