"""The model providers of inspect-ai: every model that it supports can take a seat."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from time import perf_counter
from typing import Any, ClassVar

from parley.errors import FaultKind, ParticipantError, Refused, Rejected, UsageError
from parley.match.protocol import NO_USAGE, Finish, Reply, Request, Usage
from parley.providers._endpoint import unescape_typed
from parley.providers._replies import check_token_count, printable_name
from parley.providers._secrets import complete_address, read_key, redact
from parley.rules.pool import text_of
from parley.tables import shorten

FINISH: dict[str, Finish] = {
    "stop": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
}
FINAL: dict[int, tuple[FaultKind, str]] = {
    401: ("key", "check the API key"),
    402: ("credit", "check the account's credit"),
    403: ("key", "check the API key"),
    404: ("address", "check the model's name"),
}
RETRIES = 4
SHARED = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "seed",
    "reasoning_effort",
    "reasoning_tokens",
    "max_connections",
)
MARKUP = re.compile(r"\[/?(?:bold|blue|red|yellow)\]")


@dataclass
class Provider:
    """A model called through inspect-ai: inspect/PROVIDER/NAME."""

    name: str
    _: KW_ONLY
    base_url: str | None = None
    api_key_env: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    reasoning_effort: str = ""  # a text, because `none` is one of its words
    reasoning_tokens: int | None = None
    max_connections: int | None = None
    structured: bool = False  # let the endpoint constrain the reply to the form that was asked for
    deadline: float = 600.0  # seconds a call may take, retries included
    _model: Any = field(default=None, init=False, repr=False)
    _api: Any = field(default=None, init=False, repr=False)
    _base: str | None = field(default=None, init=False, repr=False)
    _key: str | None = field(default=None, init=False, repr=False)

    key_known: ClassVar[bool] = False
    thinks_by: ClassVar[tuple[str, ...]] = ("reasoning_effort", "reasoning_tokens")

    def __post_init__(self) -> None:
        if find_spec("inspect_ai") is None:
            raise UsageError(
                f"inspect/{self.name} needs inspect-ai: pip install 'parley-eval[inspect]'"
            )
        if "/" not in self.name.strip("/"):
            raise ValueError(
                "write the model as inspect/PROVIDER/NAME, like inspect/anthropic/claude-opus-4-1"
            )
        if self.deadline <= 0:
            raise ValueError(f"`deadline` must be more than 0 seconds, not {self.deadline:g}")
        self._base = (
            complete_address(self.base_url, f"base_url of inspect/{self.name}")
            if self.base_url
            else None
        )
        self._key = read_key(self.api_key_env, needed=True) if self.api_key_env else None
        self.stop = tuple(unescape_typed(text) for text in self.stop or () if text) or None

    def _made(self) -> Any:
        """The model, made with the first call: some connect or load weights for it."""
        if self._model is None:
            hook = sys.excepthook
            try:
                self._api = import_module("inspect_ai.model")
                given = {"config": self._config(), "base_url": self._base, "api_key": self._key}
                self._model = self._api.get_model(self.name, **given, memoize=False)
            except Exception as wrong:
                raise Refused(f"inspect/{self.name}: {error_text(wrong)}") from None
            finally:
                sys.excepthook = hook  # inspect-ai sets its own, which would stay
        return self._model

    def _config(self) -> Any:
        given = {name: value for name in SHARED if (value := getattr(self, name)) not in (None, "")}
        stop = list(self.stop) if self.stop else None
        return self._api.GenerateConfig(
            **given, stop_seqs=stop, max_retries=RETRIES, timeout=ceil(self.deadline)
        )

    async def complete(self, request: Request) -> Reply:
        model, began = self._made(), perf_counter()
        config = self._api.GenerateConfig()
        if self.structured and request.schema is not None:
            config.response_schema = self._api.ResponseSchema(
                name="reply", json_schema=dict(request.schema), strict=True
            )
        try:
            async with asyncio.timeout(self.deadline):
                # In its own task: inspect-ai keeps every call in the context of its caller.
                output = await asyncio.create_task(
                    model.generate(self._messages(request), config=config, cache=False)
                )
            reply = self._reply(output)
        except TimeoutError:
            raise ParticipantError(
                f"inspect/{self.name}: no answer within {self.deadline:g} s"
            ) from None
        except ParticipantError:
            raise
        except Exception as wrong:  # its providers raise what their libraries raise
            raise self._failure(wrong) from None
        reply.latency = perf_counter() - began
        return reply

    def _messages(self, request: Request) -> list[Any]:
        api = self._api
        kinds = {
            "system": api.ChatMessageSystem,
            "user": api.ChatMessageUser,
            "assistant": api.ChatMessageAssistant,
        }
        return [kinds[turn.role](content=text_of(turn.content)) for turn in request.turns]

    def _reply(self, output: Any) -> Reply:
        if output.empty:
            raise ParticipantError(
                f"inspect/{self.name}: the endpoint's response contains no "
                f"reply{': ' + output.error if output.error else ''}"
            )
        content, usage = output.message.content, output.usage
        parts = [] if isinstance(content, str) else content
        words = (
            content
            if isinstance(content, str)
            else "".join(part.text for part in parts if part.type == "text")
        )
        thoughts = [
            part.summary if part.redacted else part.reasoning
            for part in parts
            if part.type == "reasoning"
        ]
        return Reply(
            content=redact(words),
            reasoning=redact("\n".join(filter(None, thoughts))),
            finish=FINISH.get(output.stop_reason, "other"),
            usage=usage_in(usage) if usage is not None else NO_USAGE,
            model_served=printable_name(redact(output.model)),
        )

    def _failure(self, wrong: Exception) -> ParticipantError:
        """The exception for an error of the model, of this one request, or of the moment."""
        status, said = find_status(wrong), f"inspect/{self.name}: {error_text(wrong)}"
        if status in FINAL:
            kind, advice = FINAL[status]
            return Refused(f"{said} ({advice})", kind=kind)
        if type(wrong).__name__ == "PrerequisiteError":
            return Refused(said)
        return Rejected(said) if status in (400, 413, 422) else ParticipantError(said)

    async def close(self) -> None:
        if self._model is not None:
            async with self._model:  # leaving it closes the connections
                pass


def usage_in(usage: Any) -> Usage:
    """Token counts; inspect-ai counts cached tokens apart from the others."""
    cached, kept = usage.input_tokens_cache_read, usage.input_tokens_cache_write
    into = usage.input_tokens + (cached or 0) + (kept or 0)
    return Usage(
        check_token_count(into),
        check_token_count(cached),
        check_token_count(usage.output_tokens),
        check_token_count(usage.reasoning_tokens),
        check_token_count(kept),
    )


def find_status(wrong: BaseException | None) -> int | None:
    """The HTTP status behind an error, wherever it is wrapped."""
    seen: list[BaseException] = []
    while wrong is not None and wrong not in seen:
        for attribute in ("status_code", "code"):
            if isinstance(found := getattr(wrong, attribute, None), int):
                return found
        seen.append(wrong)
        wrong = wrong.__cause__
    return None


def error_text(wrong: Exception) -> str:
    """The message of an error on one line, without the request that inspect-ai puts before it."""
    said = (
        getattr(wrong, "provider_message", None)
        or getattr(wrong, "message", None)
        or str(wrong)
        or type(wrong).__name__
    )
    words = MARKUP.sub("", " ".join(str(said).split())).removeprefix("ERROR: ")
    return shorten(redact(words), 500)
