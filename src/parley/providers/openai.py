"""OpenAI's chat completions, and the shape that most other endpoints share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Literal

import orjson

from parley.errors import ParticipantError, Refused
from parley.providers.keys import address, setting
from parley.providers.protocol import Reply, Request, Usage
from parley.providers.transport import Transport

FINISH: dict[Any, Literal["stop", "length", "filter"]] = {"stop": "stop", "length": "length", "content_filter": "filter"}


@dataclass
class OpenAICompatible:
    """One model behind an OpenAI-compatible endpoint; the fields are the options a user may set."""

    name: str
    _: KW_ONLY
    base_url: str | None = None
    api_key_env: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    structured: bool = False  # let the endpoint constrain the reply to the form that was asked for
    deadline: float = 600.0  # seconds a call may take, retries included
    _transport: Transport | None = field(default=None, init=False, repr=False)
    _head: bytes = field(default=b"", init=False, repr=False)

    home: ClassVar[str | None] = None  # the address where nothing else is said
    home_env: ClassVar[str | None] = None
    key_env: ClassVar[str | None] = None
    key_needed: ClassVar[bool] = False
    path: ClassVar[str] = "/chat/completions"

    def __post_init__(self) -> None:
        base = self.base_url or (self.home_env and setting(self.home_env)) or self.home
        if not base:
            raise ValueError(f"say where it is served: -M ALIAS.base_url=http://HOST:PORT/v1 (model {self.name})")
        variable = self.api_key_env or self.key_env
        key = setting(variable) if variable else None
        if key is None and (self.key_needed or self.api_key_env):
            raise ValueError(f"no key found: set {variable} in the environment or in .env")
        self._transport = Transport(address(base, f"base_url of {self.name}") + self.path, key, self.deadline)
        options = {
            "model": self.name,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "stop": self.stop,
        }
        self._head = orjson.dumps({name: value for name, value in options.items() if value is not None})[:-1]

    async def complete(self, request: Request) -> Reply:
        assert self._transport is not None
        began = perf_counter()
        answer = await self._transport.post(self.body(request))
        reply = self.reply(answer)
        reply.latency = perf_counter() - began
        return reply

    def body(self, request: Request) -> bytes:
        """The request as sent. Turns were encoded when they were said; here they are only put together."""
        turns = b",".join([turn.encoded for turn in request.turns])
        form = b""
        if self.structured and request.schema is not None:
            wanted = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": request.schema}}
            form = b',"response_format":' + orjson.dumps(wanted)
        return self._head + form + b',"messages":[' + turns + b"]}"

    def reply(self, answer: Any) -> Reply:
        """The reply in an answer, whatever the endpoint left out."""
        try:
            choice = answer["choices"][0]
            message = choice["message"]
            content = message.get("content")
        except (TypeError, KeyError, IndexError, AttributeError):
            raise malformed(answer, self.name) from None
        if isinstance(content, list):  # parts
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        return Reply(
            content=content if isinstance(content, str) else str(message.get("refusal") or ""),
            reasoning=str(message.get("reasoning_content") or message.get("reasoning") or ""),
            finish=FINISH.get(choice.get("finish_reason"), "other") if choice.get("finish_reason") else "stop",
            usage=usage_in(answer.get("usage")),
            model=answer.get("model") if isinstance(answer.get("model"), str) else None,
        )

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()


class Provider(OpenAICompatible):
    """OpenAI itself."""

    home, home_env, key_env, key_needed = "https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", True


def usage_in(found: Any) -> Usage:
    """Token counts as the endpoint gives them; what is not a whole number is unknown."""
    if not isinstance(found, dict):
        return Usage()

    def count(holder: Any, name: str) -> int | None:
        value = holder.get(name) if isinstance(holder, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return Usage(
        tokens_in=count(found, "prompt_tokens"),
        tokens_cached=count(found.get("prompt_tokens_details"), "cached_tokens"),
        tokens_out=count(found, "completion_tokens"),
        tokens_reasoning=count(found.get("completion_tokens_details"), "reasoning_tokens"),
    )


def malformed(answer: Any, name: str) -> ParticipantError:
    """What an answer without a reply means: some endpoints say errors with status 200."""
    if isinstance(answer, dict) and answer.get("error"):
        error = answer["error"]
        return Refused(f"{name}: the endpoint says: {error.get('message', error) if isinstance(error, dict) else error}")
    return ParticipantError(f"{name}: the answer holds no reply: {str(answer)[:200]}")
