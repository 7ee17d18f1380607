"""Anthropic's batch interface. Batches carry no metadata: a batch is recognised by the ids of its
requests, which can be read once it has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import orjson

from parley.errors import Refused, Rejected
from parley.providers._batches import (
    BATCHES,
    LONG,
    MEGABYTE,
    MOST_PAGES,
    SKEW,
    BatchClient,
    BatchLine,
    BatchPending,
    BatchRequest,
    BatchStatus,
    count_in,
    seconds_in,
)
from parley.providers._endpoint_health import Retryable
from parley.tables import shorten

COUNTS = ("succeeded", "errored", "canceled", "expired")
# the status that an ordinary call gets with each type of error
STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatchClient(BatchClient):
    """Batches of messages: `/messages/batches`."""

    most_requests: ClassVar[int] = 100_000
    most_bytes: ClassVar[int] = 256 * MEGABYTE

    async def upload(self, requests: Sequence[BatchRequest]) -> Any:
        listed = [
            {"custom_id": each.custom_id, "params": orjson.Fragment(each.body)} for each in requests
        ]
        return orjson.dumps({"requests": listed})

    async def create(self, uid: str, uploaded: Any) -> str:
        return self._id_in(await self._post_json(BATCHES, uploaded, LONG))

    async def find(self, uid: str, requests: int, since: float, known: Sequence[str]) -> str | None:
        """Look into every batch of this size. While one of them has not ended, its requests are
        unknown: raises `BatchPending`."""
        after: dict[str, str] = {}
        pending = False
        for _ in range(MOST_PAGES):
            page = await self._get(BATCHES, limit="100", **after)
            batches = self._batches_in(page)
            moments = [seconds_in(each.get("created_at")) for each in batches]
            for each, created in zip(batches, moments, strict=True):
                size = count_in(each.get("request_counts"), "processing", *COUNTS)
                too_old = created is not None and created < since - SKEW
                if size != requests or too_old or each.get("id") in known:
                    continue
                batch = self._id_in(each)
                if each.get("processing_status") != "ended":
                    pending = True
                elif (first := await self._first_id(batch)).startswith(f"{uid}-"):
                    return batch
                elif not first and not each.get("archived_at"):
                    pending = True  # its results should be there
            oldest = moments[-1] if moments else None
            if not page.get("has_more") or (oldest is not None and oldest < since - SKEW):
                break
            after = {"after_id": self._id_in(batches[-1])} if batches else {}
        if pending:
            raise BatchPending
        return None

    async def _first_id(self, batch: str) -> str:
        """The id of the first result of a batch; empty if no result can be read."""
        with suppress(Refused, Rejected):  # there may be no results
            async for line in self._results_in(f"{BATCHES}/{batch}/results"):
                if line is not None and line.custom_id:
                    return line.custom_id
        return ""

    async def poll(self, batch: str) -> BatchStatus:
        found = await self._get(f"{BATCHES}/{batch}")
        state = str(found.get("processing_status"))
        return BatchStatus(
            batch,
            state == "ended",
            count_in(found.get("request_counts"), *COUNTS),
            state,
            # not `results_url`: the key goes only to the address that the user gave
            files=(f"{BATCHES}/{batch}/results",),
        )

    def read_line(self, line: Mapping[str, Any]) -> BatchLine | None:
        name, result = line.get("custom_id"), line.get("result")
        if not isinstance(name, str) or not isinstance(result, dict):
            return None
        match result.get("type"):
            case "succeeded":
                return self.read_answer(name, 200, result.get("message"))
            case "errored":
                outer = result.get("error")
                inner = outer.get("error") if isinstance(outer, dict) else None
                error = inner if isinstance(inner, dict) else outer
                kind = error.get("type") if isinstance(error, dict) else None
                return self.read_answer(name, STATUS.get(str(kind), 500), {"error": error})
        outcome = shorten(result.get("type"), 40)  # canceled or expired
        return BatchLine(name, None, Retryable(f"the request was not answered: {outcome}"))
