"""OpenAI's chat completions API, which most other endpoints share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import orjson

from parley.errors import ParticipantError
from parley.match.protocol import Finish, Reply, Request, Usage
from parley.providers import _responses as responses
from parley.providers._batches import BatchClient
from parley.providers._capabilities import NOTHING
from parley.providers._endpoint import (
    DERIVED,
    Endpoint,
    Seed,
    join_text_parts,
    no_reply_error,
    object_in,
)
from parley.providers._error_bodies import objects_in_list
from parley.providers._openai_batches import OpenAIBatchClient
from parley.providers._replies import (
    check_id,
    check_logprobs,
    check_token_count,
    fold_system_turn,
    parse_finish,
    printable_name,
)
from parley.providers._schemas import LENGTHS, NUMBERS
from parley.rules.pool import Turn
from parley.tables import shorten

FINISH: dict[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    "content_filter": "filter",
}
LIMITS = ("max_tokens", "max_completion_tokens")
STRICT = NUMBERS | LENGTHS | {"pattern"}  # the limits that OpenAI's strict schemas may have


@dataclass
class OpenAICompatible(Endpoint):
    """One model behind an OpenAI-compatible endpoint; the fields are the options a user may set."""

    seed: Seed = DERIVED
    # a text, because the values differ between models, and `none` is one of them
    reasoning_effort: str = ""

    path: ClassVar[str] = "/chat/completions"
    optional: ClassVar[tuple[str, ...]] = (
        "temperature",
        "top_p",
        "seed",
        "stop",
        "reasoning_effort",
    )
    thinks_by: ClassVar[tuple[str, ...] | None] = ("reasoning_effort",)
    limit: ClassVar[str] = "max_tokens"  # the name of this option in requests

    def head(self, unsupported: frozenset[str]) -> dict[str, Any]:
        limits = {} if self.max_tokens is None else {self.limit_name(unsupported): self.max_tokens}
        return {"model": self.name, **self.options_to_send(unsupported), **limits}

    def limit_name(self, unsupported: frozenset[str]) -> str:
        """The name of the token limit, which differs between newer models and older servers."""
        return (
            next(name for name in LIMITS if name != self.limit)
            if self.limit in unsupported
            else self.limit
        )

    def optional_features(self, request: Request, unsupported: frozenset[str]) -> Iterator[str]:
        yield from super().optional_features(request, unsupported)
        if self.max_tokens is not None and self.limit not in unsupported:
            yield self.limit

    def body(self, request: Request, unsupported: frozenset[str] = NOTHING) -> bytes:
        """The request as sent."""
        said = fold_system_turn(request.turns) if "system" in unsupported else request.turns
        return (
            self.encoded_head(unsupported)
            + self.encoded_schema(request, unsupported)
            + self.encoded_seed(request, unsupported)
            + self.weighed(request)
            + b',"messages":'
            + encode_messages(said)
            + b"}"
        )

    def encoded_seed(self, request: Request, unsupported: frozenset[str]) -> bytes:
        """The part of a request with the derived seed of this call, if there is one."""
        seed = self.derived_seed(request, unsupported)
        return b"" if seed is None else b',"seed":%d' % seed

    def weighed(self, request: Request) -> bytes:
        """The part of a request that asks for log-probabilities."""
        return (
            b""
            if request.logprobs is None
            else b',"logprobs":true,"top_logprobs":%d' % request.logprobs
        )

    def encode_schema(self, form: str, schema: Mapping[str, Any]) -> bytes:
        wanted: dict[str, Any] = {"type": form}
        if form == "json_schema":
            said, strict = self.dialect(schema)
            wanted[form] = {"name": "reply", "strict": strict, "schema": said}
        return b',"response_format":' + orjson.dumps(wanted)

    def reply(self, answer: Any) -> Reply:
        choice = choice_in(answer, self.name)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise no_reply_error(answer, self.name)
        return Reply(
            content=join_text_parts(message.get("content"))
            or join_text_parts(message.get("refusal")),
            reasoning=join_text_parts(message.get("reasoning_content"))
            or join_text_parts(message.get("reasoning")),
            finish=parse_finish(choice.get("finish_reason"), FINISH),
            usage=usage_in(answer.get("usage")),
            **fields_of_answer(answer),
            logprobs=first_token(object_in(choice, "logprobs").get("content")),
        )


@dataclass
class Provider(OpenAICompatible):
    """OpenAI: chat completions, or the Responses API with `api=responses`."""

    api: Literal["chat", "responses"] = "chat"
    reasoning_summary: str = ""  # Responses only: auto, concise or detailed

    home: ClassVar[str | None] = "https://api.openai.com/v1"
    home_env: ClassVar[str | None] = "OPENAI_BASE_URL"
    key_env: ClassVar[str | None] = "OPENAI_API_KEY"
    key_needed: ClassVar[bool] = True
    seller: ClassVar[str | None] = "openai"
    small: ClassVar[str | None] = "gpt-4.1-nano"
    caches: ClassVar[bool | None] = True
    schema_limits: ClassVar[frozenset[str] | None] = STRICT
    # the only name that reasoning models accept; older ones accept it too
    limit: ClassVar[str] = "max_completion_tokens"
    batch_client: ClassVar[type[BatchClient] | None] = OpenAIBatchClient

    def __post_init__(self) -> None:
        if self.api == "responses":
            if isinstance(self.seed, int) or self.stop:
                raise ValueError(
                    "the Responses API does not accept `seed` and `stop`: remove them, or set "
                    "`api=chat`"
                )
            self.seed = None
        if self.api == "chat" and self.reasoning_summary:
            raise ValueError("`reasoning_summary` needs the Responses API: set `api=responses`")
        super().__post_init__()

    def route(self, base: str) -> tuple[str, str]:
        return base, responses.PATH if self.api == "responses" else self.path

    def head(self, unsupported: frozenset[str]) -> dict[str, Any]:
        if self.api == "chat":
            return super().head(unsupported)
        return responses.request_head(
            self.name,
            self.options_to_send(unsupported),
            self.max_tokens,
            self.reasoning_summary,
            unsupported,
        )

    def optional_features(self, request: Request, unsupported: frozenset[str]) -> Iterator[str]:
        if self.api == "chat":
            return super().optional_features(request, unsupported)
        known = {"system", self.limit}  # always supported there
        return (
            each
            for each in (*super().optional_features(request, unsupported), "encrypted_content")
            if each not in known | unsupported
        )

    def body(self, request: Request, unsupported: frozenset[str] = NOTHING) -> bytes:
        if self.api == "chat":
            return super().body(request, unsupported)
        return (
            self.encoded_head(unsupported)
            + self.encoded_schema(request, unsupported)
            + responses.encode_turns(request.turns)
            + b"}"
        )

    def encode_schema(self, form: str, schema: Mapping[str, Any]) -> bytes:
        return (
            responses.encode_format(form, *self.dialect(schema))
            if self.api == "responses"
            else super().encode_schema(form, schema)
        )

    def reply(self, answer: Any) -> Reply:
        return (
            responses.reply_in_answer(answer, self.name)
            if self.api == "responses"
            else super().reply(answer)
        )


def encode_messages(turns: Sequence[Turn]) -> bytes:
    """A conversation as the list of messages that the API takes."""
    return orjson.dumps([{"role": turn.role, "content": turn.content} for turn in turns])


def choice_in(answer: Any, name: str) -> dict[str, Any]:
    """The first choice of an answer; raises an error if the endpoint stopped in the middle."""
    try:
        choice = answer["choices"][0]
    except (TypeError, KeyError, IndexError):
        raise no_reply_error(answer, name) from None
    if not isinstance(choice, dict):
        raise no_reply_error(answer, name)
    if choice.get("error"):
        raise ParticipantError(
            f"{name}: the endpoint broke off the reply with an error: "
            f"{shorten(choice['error'], 200)}"
        )
    return choice


def first_token(content: Any) -> dict[str, float] | None:
    """The possible first tokens of a reply with their log-probabilities; white space is skipped."""
    for place in objects_in_list(content):
        if str(place.get("token", "")).strip():
            tokens = [*objects_in_list(place.get("top_logprobs")), place]
            return check_logprobs((each.get("token"), each.get("logprob")) for each in tokens)
    return None


def fields_of_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """How an endpoint names an answer, the model and the system that gave it, as fields of a
    reply."""
    return {
        "model_served": printable_name(answer.get("model")),
        "response_id": check_id(answer.get("id")),
        "system_fingerprint": check_id(answer.get("system_fingerprint")),
    }


def usage_in(found: Any) -> Usage:
    """Token counts as the endpoint reports them; None for anything but a whole number."""
    if not isinstance(found, dict):
        return Usage()
    details = object_in(found, "prompt_tokens_details")
    cached = details.get("cached_tokens")
    return Usage(
        check_token_count(found.get("prompt_tokens")),
        # the second is DeepSeek's name
        check_token_count(found.get("prompt_cache_hit_tokens") if cached is None else cached),
        check_token_count(found.get("completion_tokens")),
        check_token_count(object_in(found, "completion_tokens_details").get("reasoning_tokens")),
        check_token_count(details.get("cache_write_tokens")),  # as OpenRouter counts them
    )
