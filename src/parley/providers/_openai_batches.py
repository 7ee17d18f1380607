"""OpenAI's batch interface, which some other endpoints share: a file of requests, a batch, and a
file of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import aiohttp
import orjson

from parley.providers._batches import (
    BATCHES,
    LONG,
    MEGABYTE,
    MOST_PAGES,
    SKEW,
    BatchClient,
    BatchLine,
    BatchRequest,
    BatchStatus,
    count_in,
    is_plain,
    seconds_in,
)
from parley.providers._endpoint_health import Retryable
from parley.providers._error_bodies import objects_in_list, read_error
from parley.tables import shorten

MARK = "parley_batch"  # the key of the metadata
ENDED = ("completed", "failed", "expired", "cancelled")
NOT_ANSWERED = ("batch_expired", "batch_cancelled")
# the account has too many tokens in its queue
TOO_LARGE = ("token_limit_exceeded", "enqueued_token_limit_exceeded")


class OpenAIBatchClient(BatchClient):
    """Batches by files: `/files` and `/batches`."""

    most_requests: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 200 * MEGABYTE

    async def upload(self, requests: Sequence[BatchRequest]) -> Any:
        url = f"/v1{self._path}"
        lines = [
            orjson.dumps(
                {
                    "custom_id": each.custom_id,
                    "method": "POST",
                    "url": url,
                    "body": orjson.Fragment(each.body),
                }
            )
            for each in requests
        ]
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field(
            "file", b"\n".join(lines), filename="batch.jsonl", content_type="application/jsonl"
        )
        return self._id_in(await self._fetch("POST", "/files", LONG, data=form))

    async def create(self, uid: str, uploaded: Any) -> str:
        wanted = {
            "input_file_id": uploaded,
            "endpoint": f"/v1{self._path}",
            "completion_window": "24h",
            "metadata": {MARK: uid},
        }
        return self._id_in(await self._post_json(BATCHES, orjson.dumps(wanted)))

    async def find(self, uid: str, requests: int, since: float, known: Sequence[str]) -> str | None:
        after: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            page = await self._get(BATCHES, limit="100", **after)
            batches = self._batches_in(page)
            for each in batches:
                metadata = each.get("metadata")
                if isinstance(metadata, dict) and metadata.get(MARK) == uid:
                    return self._id_in(each)
            if not batches or not page.get("has_more"):
                return None
            oldest = seconds_in(batches[-1].get("created_at"))
            if oldest is not None and oldest < since - SKEW:
                return None
            after = {"after": self._id_in(batches[-1])}
        return None

    async def poll(self, batch: str) -> BatchStatus:
        found = await self._get(f"{BATCHES}/{batch}")
        state = str(found.get("status"))
        files = [found.get(f"{kind}_file_id") for kind in ("output", "error")]
        errors = found.get("errors")
        faults = objects_in_list(errors.get("data") if isinstance(errors, dict) else None)
        said = "; ".join(shorten(each.get("message") or each, 200) for each in faults[:3])
        return BatchStatus(
            batch,
            state in ENDED,
            count_in(found.get("request_counts"), "completed", "failed"),
            state,
            (said or "the provider gave no reason") if state == "failed" else "",
            state == "failed" and any(each.get("code") in TOO_LARGE for each in faults),
            tuple(
                f"/files/{each}/content"
                for each in files
                if isinstance(each, str) and is_plain(each)
            ),
        )

    def read_line(self, line: Mapping[str, Any]) -> BatchLine | None:
        name, response, error = (line.get(key) for key in ("custom_id", "response", "error"))
        if not isinstance(name, str):
            return None
        if isinstance(response, dict):
            status = response.get("status_code")
            # some compatible servers leave the status out
            return self.read_answer(
                name,
                status if isinstance(status, int) else 200,
                response.get("body"),
                response.get("request_id"),
            )
        if isinstance(error, dict) and error.get("code") in NOT_ANSWERED:
            return BatchLine(name, None, Retryable(shorten(error.get("message") or error, 200)))
        status = read_error(error)[0] if error else 0
        return self.read_answer(name, status or 500, {"error": error})
