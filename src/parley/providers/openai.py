"""OpenAI's chat completions, and the shape that most other endpoints share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from time import perf_counter
from typing import Any, ClassVar

import orjson

from parley.errors import ParticipantError
from parley.expect import clip
from parley.providers.keys import address, key_from, place_of, setting
from parley.providers.protocol import Finish, Reply, Request, Usage, counted, printable
from parley.providers.transport import Transport

FINISH: dict[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    "content_filter": "filter",
}


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
    references: ClassVar[bool] = True  # it takes base_url as written, so that errors can name it so

    def __post_init__(self) -> None:
        base = self.base_url or (self.home_env and setting(self.home_env)) or self.home
        if not base:
            raise ValueError(f"say where it is served: -M ALIAS.base_url=http://HOST:PORT/v1 (model {self.name})")
        key = key_from(self.api_key_env or self.key_env, needed=self.key_needed or bool(self.api_key_env))
        self.stop = tuple(unescaped(text) for text in self.stop or () if text) or None
        url = address(base, f"base_url of {self.name}", self.path)
        self._transport = Transport(url, key, self.deadline, place_of(base, self.path))
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
        choice = choice_in(answer, self.name)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise malformed(answer, self.name)
        return Reply(
            content=words(message.get("content")) or words(message.get("refusal")),
            reasoning=words(message.get("reasoning_content")) or words(message.get("reasoning")),
            finish=finish_in(choice),
            usage=usage_in(answer.get("usage")),
            model=model_in(answer),
        )

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()


class Provider(OpenAICompatible):
    """OpenAI itself."""

    home, home_env, key_env, key_needed = "https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", True


def choice_in(answer: Any, name: str) -> dict[str, Any]:
    """The first choice of an answer; one that broke off on the endpoint's side is no reply."""
    try:
        choice = answer["choices"][0]
    except (TypeError, KeyError, IndexError):
        raise malformed(answer, name) from None
    if not isinstance(choice, dict):
        raise malformed(answer, name)
    if choice.get("error"):
        raise ParticipantError(f"{name}: the endpoint broke off: {clip(choice['error'], 200)}")
    return choice


def malformed(answer: Any, name: str) -> ParticipantError:
    return ParticipantError(f"{name}: the answer holds no reply: {clip(answer, 200)}")


def words(content: Any) -> str:
    """The text of a message, also where it comes in parts; what is no text is left out."""
    if isinstance(content, list):
        return "".join(words(part.get("text") if isinstance(part, dict) else part) for part in content)
    return content if isinstance(content, str) else ""


def finish_in(choice: dict[str, Any]) -> Finish:
    reason = choice.get("finish_reason")
    return FINISH.get(reason if isinstance(reason, str) else "", "other") if reason else "stop"


def model_in(answer: dict[str, Any]) -> str | None:
    """The model as the endpoint names it, as far as that can be printed."""
    return printable(answer.get("model"))


def usage_in(found: Any) -> Usage:
    """Token counts as the endpoint gives them; what is not a whole number is unknown."""
    if not isinstance(found, dict):
        return Usage()

    into, out = found.get("prompt_tokens_details"), found.get("completion_tokens_details")
    return Usage(
        counted(found.get("prompt_tokens")),
        counted(into.get("cached_tokens")) if isinstance(into, dict) else None,
        counted(found.get("completion_tokens")),
        counted(out.get("reasoning_tokens")) if isinstance(out, dict) else None,
    )


def unescaped(text: str) -> str:
    """A text as typed in a shell: its \\n and \\t are line breaks and tabs."""
    return text.replace("\\n", "\n").replace("\\t", "\t")
