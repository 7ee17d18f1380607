"""OpenAI's chat completions, and the shape that most other endpoints share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import orjson

from parley.errors import ParticipantError
from parley.match.protocol import Finish, Reply, Request, Usage
from parley.providers import _responses as responses
from parley.providers._capabilities import NOTHING
from parley.providers._endpoint import (
    DERIVED,
    Endpoint,
    Seed,
    join_text_parts,
    no_reply_error,
    object_in,
    objects_in_list,
)
from parley.providers._replies import (
    check_logprobs,
    check_token_count,
    fold_system_turn,
    parse_finish,
    printable_name,
)
from parley.providers._schemas import LENGTHS, NUMBERS
from parley.tables import shorten

FINISH: dict[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    "content_filter": "filter",
}
LIMITS = ("max_tokens", "max_completion_tokens")
STRICT = NUMBERS | LENGTHS | {"pattern"}  # what OpenAI's strict schemas may limit


@dataclass
class OpenAICompatible(Endpoint):
    """One model behind an OpenAI-compatible endpoint; the fields are the options a user may set."""

    seed: Seed = DERIVED
    # a text and no choice: the words differ from model to model, and `none` is one of them
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
    limit: ClassVar[str] = "max_tokens"  # the name of max_tokens where it is taken

    def head(self, unsupported: frozenset[str]) -> dict[str, Any]:
        limits = {} if self.max_tokens is None else {self.limit_name(unsupported): self.max_tokens}
        return {"model": self.name, **self.options_to_send(unsupported), **limits}

    def limit_name(self, unsupported: frozenset[str]) -> str:
        """Newer models take the limit under another name than older servers."""
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
        """The request as sent. Turns were encoded when they were said; here they are only put
        together."""
        said = fold_system_turn(request.turns) if "system" in unsupported else request.turns
        turns = b",".join([turn.encoded for turn in said])
        return (
            self.encoded_head(unsupported)
            + self.encoded_schema(request, unsupported)
            + self.encoded_seed(request, unsupported)
            + self.weighed(request)
            + b',"messages":['
            + turns
            + b"]}"
        )

    def encoded_seed(self, request: Request, unsupported: frozenset[str]) -> bytes:
        """The part of a request that has the seed of this call, where it has one of its own."""
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
            model=model_in(answer),
            logprobs=first_token(object_in(choice, "logprobs").get("content")),
        )


@dataclass
class Provider(OpenAICompatible):
    """OpenAI itself: chat completions, or the Responses API (`api: responses`)."""

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
    # reasoning models take no other; for older ones it means the same
    limit: ClassVar[str] = "max_completion_tokens"

    def __post_init__(self) -> None:
        if self.api == "responses":
            if isinstance(self.seed, int) or self.stop:
                raise ValueError(
                    "the Responses API takes no seed and no stop: leave them out, "
                    "or set api to chat"
                )
            self.seed = None
        if self.api == "chat" and self.reasoning_summary:
            raise ValueError("reasoning_summary wants the Responses API: set api to responses")
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
        known = {"system", self.limit}  # these are always taken there
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


def choice_in(answer: Any, name: str) -> dict[str, Any]:
    """The first choice of an answer; one that broke off on the endpoint's side is no reply."""
    try:
        choice = answer["choices"][0]
    except (TypeError, KeyError, IndexError):
        raise no_reply_error(answer, name) from None
    if not isinstance(choice, dict):
        raise no_reply_error(answer, name)
    if choice.get("error"):
        raise ParticipantError(f"{name}: the endpoint broke off: {shorten(choice['error'], 200)}")
    return choice


def first_token(content: Any) -> dict[str, float] | None:
    """The tokens that a reply could have begun with, and how likely each was; white space is no
    beginning."""
    for place in objects_in_list(content):
        if str(place.get("token", "")).strip():
            tokens = [*objects_in_list(place.get("top_logprobs")), place]
            return check_logprobs((each.get("token"), each.get("logprob")) for each in tokens)
    return None


def model_in(answer: dict[str, Any]) -> str | None:
    """The model as the endpoint names it, as far as that can be printed."""
    return printable_name(answer.get("model"))


def usage_in(found: Any) -> Usage:
    """Token counts as the endpoint gives them; what is not a whole number is unknown."""
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
