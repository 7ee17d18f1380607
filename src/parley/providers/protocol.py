"""The narrow waist: a request goes to a provider, a reply comes back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from parley.pool import Content, Turn

THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
# The opening tag was part of the template: prose up to the closing one. An object that quotes a tag is no thought.
TEMPLATE_OPENED = re.compile(r"(?!\s*[{\[])((?:(?!<think(?:ing)?>).)*?)</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the endpoint counted them; None where it did not say."""

    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    tokens_reasoning: int | None = None


NO_USAGE = Usage()


@dataclass(slots=True)
class Reply:
    """What came back: the words, and how they came about."""

    content: Content
    reasoning: str = ""
    finish: Literal["stop", "length", "filter", "other"] = "stop"
    usage: Usage = NO_USAGE
    model: str | None = None  # as the endpoint names it
    latency: float | None = None  # seconds
    carry: Any = None  # what this provider wants back with the next turn, and nobody else sees
    sent: str | None = None  # digest of demonstrations put into the prompt


@dataclass(slots=True)
class Request:
    """What a model is asked: the conversation, and the form of answer where there is one."""

    turns: list[Turn]
    schema: Mapping[str, Any] | None = None


class Provider(Protocol):
    """Serves one model."""

    async def complete(self, request: Request) -> Reply: ...

    async def close(self) -> None: ...


def thought_apart(text: str) -> tuple[str, str]:
    """A reply and the thinking that some models write before it, told apart."""
    if "</" not in text and "<" not in text[:80]:
        return text, ""
    thoughts = []
    while found := THOUGHT.match(text):
        thoughts.append(found[2].strip())
        text = text[found.end() :].lstrip()
    if not thoughts and (found := TEMPLATE_OPENED.match(text)):
        thoughts.append(found[1].strip())
        text = text[found.end() :].lstrip()
    return text, "\n".join(filter(None, thoughts))
