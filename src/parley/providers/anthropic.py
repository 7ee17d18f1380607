"""Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import orjson

from parley.errors import Rejected
from parley.match.protocol import Finish, Reply, Request, Usage
from parley.providers._anthropic_batches import AnthropicBatchClient
from parley.providers._batches import BatchClient
from parley.providers._capabilities import NOTHING
from parley.providers._endpoint import (
    Endpoint,
    encode_text,
    find_provider_state,
    join_text_parts,
    no_reply_error,
    object_in,
    path_without_query,
)
from parley.providers._error_bodies import objects_in_list
from parley.providers._replies import (
    check_id,
    check_provider_state,
    check_token_count,
    parse_finish,
    printable_name,
)
from parley.providers._schemas import NONE
from parley.rules.pool import Turn, text_of

FAMILY = "anthropic"
# tokens for the text of a reply if max_tokens is not set; the API needs a limit in every request
REPLY_TOKENS = 8192
THINKING_TOKENS = 8192  # room for thinking, which counts against the same limit
TOO_MANY = re.compile(r"max_tokens: \d+ > (\d{1,9}), which is the maximum")
MOST = "tokens above "  # a feature that older models lack, with their limit
CORRECTIONS = 2  # of that limit; an endpoint that sends more of them is not believed
MARK = b',"cache_control":{"type":"ephemeral"}'
THINKING = ("thinking", "redacted_thinking")
FINISH: dict[str, Finish] = {
    **dict.fromkeys(("end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    "refusal": "filter",
}


@dataclass
class Provider(Endpoint):
    """Anthropic's Messages API."""

    thinking: Literal["adaptive", "disabled"] | None = None
    thinking_budget: int | None = None  # tokens, for models that need a fixed budget
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    cache: bool = True  # mark what the next request of a match begins with

    home: ClassVar[str | None] = "https://api.anthropic.com/v1"
    home_env: ClassVar[str | None] = "ANTHROPIC_BASE_URL"
    key_env: ClassVar[str | None] = "ANTHROPIC_API_KEY"
    key_needed: ClassVar[bool] = True
    key_header: ClassVar[str] = "x-api-key"
    seller: ClassVar[str | None] = FAMILY
    small: ClassVar[str | None] = "claude-haiku-4-5"
    caches: ClassVar[bool | None] = True
    thinks_by: ClassVar[tuple[str, ...] | None] = ("thinking", "thinking_budget", "effort")
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}
    forms: ClassVar[tuple[str, ...]] = ("json_schema",)
    schema_limits: ClassVar[frozenset[str] | None] = NONE
    folds: ClassVar[bool] = False
    batch_client: ClassVar[type[BatchClient] | None] = AnthropicBatchClient

    def __post_init__(self) -> None:
        if self.thinking_budget is not None:
            if self.thinking is not None:
                raise ValueError(
                    "set either `thinking` or `thinking_budget`, not both (`thinking_budget` "
                    "is for models without adaptive thinking)"
                )
            if self.thinking_budget < 1024 or (
                self.max_tokens is not None and self.max_tokens <= self.thinking_budget
            ):
                raise ValueError(
                    "`thinking_budget` must be at least 1024 and less than `max_tokens`, not "
                    f"{self.thinking_budget}"
                )
        super().__post_init__()

    def route(self, base: str) -> tuple[str, str]:
        return base, "/messages" if path_without_query(base).endswith("/v1") else "/v1/messages"

    def batch_root(self, path: str) -> str:
        return path

    def head(self, unsupported: frozenset[str]) -> dict[str, Any]:
        options = self.options_to_send(unsupported)
        if "stop" in options:
            options["stop_sequences"] = options.pop("stop")
        if thinking := self.thinking_wanted(unsupported):
            options["thinking"] = thinking
        return {
            "model": self.name,
            "max_tokens": min([self.reply_limit, *allowed_options(unsupported)]),
            **options,
        }

    @property
    def reply_limit(self) -> int:
        """The `max_tokens` to send, if the model allows as many."""
        room = REPLY_TOKENS + (self.thinking_budget or THINKING_TOKENS)
        return room if self.max_tokens is None else self.max_tokens

    def leave_out_rejected(
        self, rejected: Rejected, request: Request, unsupported: frozenset[str]
    ) -> frozenset[str]:
        """Older models allow fewer tokens than the default, and their error says how many. A limit
        set by the user is not changed."""
        found, known = (
            TOO_MANY.search(rejected.answer) if self.max_tokens is None else None,
            allowed_options(unsupported),
        )
        sent = min([self.reply_limit, *known])
        if (
            found
            and (self.thinking_budget or 0) < int(found[1]) < sent
            and len(known) < CORRECTIONS
        ):
            return unsupported | {f"{MOST}{found[1]}"}
        return super().leave_out_rejected(rejected, request, unsupported)

    def thinking_wanted(self, unsupported: frozenset[str]) -> dict[str, Any] | None:
        """The thinking settings to send. Newer models hide adaptive thinking unless the request
        asks to show it."""
        if self.thinking_budget is not None:
            return {"type": "enabled", "budget_tokens": self.thinking_budget}
        if self.thinking == "adaptive" and "display" not in unsupported:
            return {"type": "adaptive", "display": "summarized"}
        return {"type": self.thinking} if self.thinking else None

    def optional_features(self, request: Request, unsupported: frozenset[str]) -> Iterator[str]:
        yield from super().optional_features(request, unsupported)
        if self.thinking == "adaptive" and "display" not in unsupported:
            yield "display"

    def encoded_schema(self, request: Request, unsupported: frozenset[str]) -> bytes:
        form, effort = (
            super().encoded_schema(request, unsupported),
            orjson.dumps({"effort": self.effort})[1:-1] if self.effort else b"",
        )
        return (
            b',"output_config":{' + b",".join(filter(None, (effort, form))) + b"}"
            if effort or form
            else b""
        )

    def encode_schema(self, form: str, schema: Mapping[str, Any]) -> bytes:
        return b'"format":' + orjson.dumps({"type": form, "schema": self.dialect(schema)[0]})

    def body(self, request: Request, unsupported: frozenset[str] = NOTHING) -> bytes:
        """The request as sent. Cache marks follow the system text and the last two questions, so
        that the next request finds what was cached, even if there are more blocks in between than
        the API looks back."""
        system, turns = b"", request.turns
        if turns[0].role == "system":
            system, turns = b',"system":[' + text_block(turns[0], self.cache) + b"]", turns[1:]
        # the API rejects empty text
        turns = [turn for turn in turns if turn.role == "user" or text_of(turn.content).strip()]
        questions = [at for at, turn in enumerate(turns) if turn.role == "user"]
        marked = questions[-2:] if self.cache else []
        said = [self.message(turn, at in marked) for at, turn in enumerate(turns)]
        return (
            self.encoded_head(unsupported)
            + self.encoded_schema(request, unsupported)
            + system
            + b',"messages":['
            + b",".join(said)
            + b"]}"
        )

    def message(self, turn: Turn, marked: bool) -> bytes:
        """A turn as sent; a reply with thinking goes back unchanged."""
        if kept := find_provider_state(turn, FAMILY):
            return b'{"role":"assistant","content":' + orjson.dumps(kept) + b"}"
        if marked:
            return b'{"role":"user","content":[' + text_block(turn, True) + b"]}"
        return orjson.dumps({"role": turn.role, "content": turn.content})

    def reply(self, answer: Any) -> Reply:
        if not isinstance(answer, dict) or not isinstance(answer.get("content"), list):
            raise no_reply_error(answer, self.name)
        blocks = [
            block
            for block in objects_in_list(answer["content"])
            if block.get("type") != "text" or join_text_parts(block.get("text"))
        ]
        thought = [block for block in blocks if block.get("type") in THINKING]
        # A turn must not end with thinking: if the limit cut off the text, nothing is sent back.
        whole = bool(thought) and blocks[-1].get("type") == "text"
        return Reply(
            content="".join(
                join_text_parts(block.get("text"))
                for block in blocks
                if block.get("type") == "text"
            ),
            reasoning="\n".join(
                filter(None, (join_text_parts(block.get("thinking")) for block in thought))
            ),
            finish=parse_finish(answer.get("stop_reason"), FINISH),
            usage=usage_in(object_in(answer, "usage")),
            model_served=printable_name(answer.get("model")),
            response_id=check_id(answer.get("id")),
            provider_state=check_provider_state({FAMILY: blocks}, self.name) if whole else None,
        )


def allowed_options(unsupported: frozenset[str]) -> list[int]:
    """The limits of tokens that a model has reported."""
    return [int(feature.removeprefix(MOST)) for feature in unsupported if feature.startswith(MOST)]


def text_block(turn: Turn, marked: bool) -> bytes:
    """A turn's text as a block; a mark caches everything up to here."""
    return b'{"type":"text","text":' + encode_text(turn) + (MARK if marked else b"") + b"}"


def usage_in(found: dict[str, Any]) -> Usage:
    """Token counts. The API counts tokens read from the cache and written to it separately; here
    they are part of the input."""
    fresh, read, written = (
        check_token_count(found.get(f"{kind}input_tokens"))
        for kind in ("", "cache_read_", "cache_creation_")
    )
    return Usage(
        None if fresh is None else check_token_count(fresh + (read or 0) + (written or 0)),
        read,
        check_token_count(found.get("output_tokens")),
        check_token_count(object_in(found, "output_tokens_details").get("thinking_tokens")),
        written,
    )
