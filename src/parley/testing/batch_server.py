"""A real HTTP server on loopback with the batch interfaces of OpenAI and Anthropic, which
misbehaves on purpose and counts what it bills.

async with BatchServer(ends=["expired"], acts={"poll": [sent(b"later", 500)]}) as server:
    ...  # play a run with base_url=server.url; server.billed counts the requests by their body
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from parley.testing.server import Act, Asked, Server, says, sent

Ending = Literal["completed", "failed", "expired", "cancelled"]
Answer = Callable[[dict[str, Any]], Any]
Lines = list[dict[str, Any]]
ERRORS = {400: "invalid_request_error", 429: "rate_limit_error", 500: "api_error"}


@dataclass(frozen=True)
class Failed:
    """The answer to one request: an error with this status."""

    status: int
    message: str = "it did not work"


@dataclass
class StoredBatch:
    """A batch as the server keeps it."""

    id: str
    requests: Lines  # each with custom_id and body
    metadata: Any
    ending: Ending
    polls: int  # that are answered before it has ended
    results: Lines
    created: float
    anthropic: bool

    @property
    def ended(self) -> bool:
        return self.polls <= 0


class BatchServer(Server):
    """Answers every request of a batch with `answer(body)`: an object, or `Failed`.

    A batch ends after `polls` polls or lists that show it. `ends` says how batches end, in order;
    later ones are completed. Half of the requests of a batch that expired or was cancelled have no
    answer; the reason for one that failed is `fault`. `acts` are prepared responses instead of the
    usual ones, in order, None for a usual one: for "upload", "create" (nothing is created),
    "created" (the batch exists, but its answer is replaced), "list", "poll" and "results".
    `mangle` changes the lines of results.
    """

    def __init__(
        self,
        answer: Answer | None = None,
        *,
        polls: int = 1,
        ends: Sequence[Ending] = (),
        acts: Mapping[str, Sequence[Act | None]] | None = None,
        mangle: Callable[[Lines], Lines] = lambda lines: lines,
        fault: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(self._respond)
        self.answer, self.polls, self.ends, self.mangle = answer, polls, list(ends), mangle
        self.fault = dict(fault or {"code": "invalid_json_line", "message": "line 1 is not JSON"})
        self.acts = {name: list(found) for name, found in (acts or {}).items()}
        self.batches: dict[str, StoredBatch] = {}
        self.files: dict[str, str] = {}
        self.billed: Counter[str] = Counter()  # requests with an answer, by their body
        self.single = 0  # ordinary calls
        self._numbers = count(1)

    async def _respond(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(asked.path)
        path, query = parts.path.removeprefix("/v1"), parse_qs(parts.query)
        kind, answer = self._find(asked, path, {key: each[0] for key, each in query.items()})
        prepared = self.acts.get(kind, [])
        act = prepared.pop(0) if prepared else None
        await (act or sent(*(answer() if callable(answer) else answer)))(asked, writer)

    def _find(self, asked: Asked, path: str, query: Mapping[str, str]) -> tuple[str, Any]:
        """The kind of a request, and how to answer it."""
        match asked.method, path.strip("/").split("/"):
            case "POST", ["chat", "completions"] | ["messages"] | ["responses"]:
                return "single", lambda: self._call(asked.body, path == "/messages")
            case "POST", ["files"]:
                return "upload", lambda: self._upload(asked)
            case "POST", ["batches"]:
                return self._creation(lambda: self._create_from_file(asked.body))
            case "POST", ["messages", "batches"]:
                return self._creation(lambda: self._create_from_body(asked.body))
            case "GET", ["batches"]:
                return "list", lambda: self._list(query, anthropic=False)
            case "GET", ["messages", "batches"]:
                return "list", lambda: self._list(query, anthropic=True)
            case "GET", ["batches", name] | ["messages", "batches", name]:
                return "poll", lambda: self._poll(name)
            case "GET", ["files", name, "content"]:
                return "results", lambda: self._file(name)
            case "GET", ["messages", "batches", name, "results"]:
                return "results", lambda: self._lines_of(self.batches.get(name))
        return "unknown", ({"error": {"message": f"no such path: {path}"}}, 404)

    def _creation(self, create: Callable[[], Any]) -> tuple[str, Any]:
        """Create a batch, unless the next act for "create" prevents it."""
        if next(iter(self.acts.get("create", ())), None) is not None:
            return "create", create
        del self.acts.get("create", [])[:1]
        return "created", create()

    def _call(self, body: dict[str, Any], anthropic: bool) -> tuple[Any, int]:
        self.single += 1
        found = self._answer_to(body, anthropic)
        if isinstance(found, Failed):
            return {"error": {"message": found.message}}, found.status
        self.billed[json.dumps(body, sort_keys=True)] += 1
        return found, 200

    def _answer_to(self, body: dict[str, Any], anthropic: bool) -> Any:
        if self.answer is not None:
            return self.answer(body)
        return says_as_anthropic() if anthropic else says()

    def _upload(self, asked: Asked) -> tuple[Any, int]:
        boundary = asked.headers["content-type"].partition("boundary=")[2].strip('"')
        parts = asked.text.split(f"--{boundary}")
        fields = {}
        for part in parts[1:-1]:
            head, _, text = part.strip("\r\n").partition("\r\n\r\n")
            fields[head.partition('name="')[2].partition('"')[0]] = text
        if fields.get("purpose") != "batch":
            return {"error": {"message": "the purpose must be batch"}}, 400
        name = f"file-{next(self._numbers)}"
        self.files[name] = fields["file"]
        return {"id": name, "object": "file", "purpose": "batch"}, 200

    def _create_from_file(self, wanted: dict[str, Any]) -> tuple[Any, int]:
        lines = [json.loads(line) for line in self.files[wanted["input_file_id"]].splitlines()]
        urls = {(line["method"], line["url"]) for line in lines}
        if urls != {("POST", wanted["endpoint"])} or wanted["completion_window"] != "24h":
            return {"error": {"message": f"wrong lines: {urls}"}}, 400
        return self._create(lines, wanted.get("metadata"), anthropic=False)

    def _create_from_body(self, wanted: dict[str, Any]) -> tuple[Any, int]:
        lines = [
            {"custom_id": each["custom_id"], "body": each["params"]} for each in wanted["requests"]
        ]
        return self._create(lines, None, anthropic=True)

    def _create(self, lines: Lines, metadata: Any, anthropic: bool) -> tuple[Any, int]:
        ids = [line["custom_id"] for line in lines]
        wrong = [name for name in ids if not is_custom_id(name)]
        if wrong or len(set(ids)) < len(ids):
            return {"error": {"message": f"custom_id: {wrong or 'not unique'}"}}, 400
        ending = self.ends.pop(0) if self.ends else "completed"
        name = f"{'msgbatch' if anthropic else 'batch'}_{next(self._numbers)}"
        batch = StoredBatch(name, lines, metadata, ending, self.polls, [], time.time(), anthropic)
        self.batches[name] = batch
        broken_off = ending in ("expired", "cancelled")
        answered = lines[: len(lines) // 2] if broken_off else lines
        for line in [] if ending == "failed" else lines:
            result = self._result(line, anthropic, ending if line not in answered else "completed")
            batch.results.append(result)
        return describe(batch, self), 200

    def _result(self, line: Mapping[str, Any], anthropic: bool, ending: Ending) -> dict[str, Any]:
        """The line of one result; what has an answer is billed."""
        name = line["custom_id"]
        if ending != "completed":
            said = {"code": f"batch_{ending}", "message": f"the batch was {ending}"}
            short = {"cancelled": "canceled"}.get(ending, ending)
            return (
                {"custom_id": name, "result": {"type": short}}
                if anthropic
                else {"custom_id": name, "response": None, "error": said}
            )
        found = self._answer_to(line["body"], anthropic)
        if isinstance(found, Failed):
            error = {"type": ERRORS.get(found.status, "api_error"), "message": found.message}
            whole = {"type": "error", "error": error}
            return (
                {"custom_id": name, "result": {"type": "errored", "error": whole}}
                if anthropic
                else {
                    "custom_id": name,
                    "response": {"status_code": found.status, "body": {"error": error}},
                    "error": None,
                }
            )
        self.billed[json.dumps(line["body"], sort_keys=True)] += 1
        if anthropic:
            return {"custom_id": name, "result": {"type": "succeeded", "message": found}}
        return {
            "custom_id": name,
            "response": {"status_code": 200, "body": found},
            "error": None,
        }

    def _list(self, query: Mapping[str, str], anthropic: bool) -> tuple[Any, int]:
        """One page, the newest first."""
        found = [each for each in self.batches.values() if each.anthropic == anthropic][::-1]
        names = [each.id for each in found]
        after = query.get("after_id" if anthropic else "after")
        start = names.index(after) + 1 if after in names else 0
        end = start + int(query.get("limit", "20"))
        page = [describe(each, self) for each in found[start:end]]
        for each in found[start:end]:
            each.polls -= 1
        return {"object": "list", "data": page, "has_more": end < len(found)}, 200

    def _poll(self, name: str) -> tuple[Any, int]:
        batch = self.batches.get(name)
        if batch is None:
            return {"error": {"message": f"no batch {name}"}}, 404
        found = describe(batch, self)
        batch.polls -= 1
        return found, 200

    def _file(self, name: str) -> tuple[Any, int]:
        batch = self.batches.get(name.removesuffix("-output").removesuffix("-error"))
        if batch is None:
            return {"error": {"message": f"no file {name}"}}, 404
        return self._lines_of(batch, errors=name.endswith("-error"))

    def _lines_of(self, batch: StoredBatch | None, errors: bool | None = None) -> tuple[Any, int]:
        if batch is None or not batch.ended:
            return {"error": {"message": "there are no results"}}, 404
        lines = [line for line in batch.results if errors in (None, is_error(line))]
        found = self.mangle(lines) if not errors else lines
        return b"".join(json.dumps(line).encode() + b"\n" for line in found), 200


def says_as_anthropic(content: str = "hello", **more: Any) -> dict[str, Any]:
    """A message with these words, as Anthropic's interface sends it."""
    blocks = [{"type": "text", "text": content}]
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {
        "model": "served-1",
        "content": blocks,
        "stop_reason": "end_turn",
        "usage": usage,
        **more,
    }


def is_error(line: Mapping[str, Any]) -> bool:
    """Whether a line belongs into OpenAI's file of errors."""
    response = line.get("response")
    return not isinstance(response, dict) or response.get("status_code") != 200


def is_custom_id(name: Any) -> bool:
    """Whether both providers accept the id of a request."""
    plain = isinstance(name, str) and name.replace("-", "").replace("_", "").isalnum()
    return plain and name.isascii() and len(name) <= 64


def describe(batch: StoredBatch, server: BatchServer) -> dict[str, Any]:
    """A batch as its interface describes it."""
    failed = sum(is_error(line) for line in batch.results)
    if batch.anthropic:
        kinds = Counter(line["result"]["type"] for line in batch.results)
        names = ("succeeded", "errored", "canceled", "expired")
        counts = {name: kinds[name] if batch.ended else 0 for name in names}
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if batch.ended else "in_progress",
            "request_counts": {
                "processing": 0 if batch.ended else len(batch.requests),
                **counts,
            },
            "created_at": datetime.fromtimestamp(batch.created, UTC).isoformat(),
            "results_url": "http://another.invalid/results",
        }
    done = len(batch.results) if batch.ended else 0
    has_files = batch.ended and batch.ending != "failed"
    return {
        "id": batch.id,
        "object": "batch",
        "status": batch.ending if batch.ended else "in_progress",
        "created_at": int(batch.created),
        "metadata": batch.metadata,
        "request_counts": {
            "total": len(batch.requests),
            "completed": done - failed if batch.ended else 0,
            "failed": failed if batch.ended else 0,
        },
        "output_file_id": f"{batch.id}-output" if has_files else None,
        "error_file_id": f"{batch.id}-error" if has_files and failed else None,
        "errors": {"object": "list", "data": [server.fault]} if batch.ending == "failed" else None,
    }
