"""Text-completion endpoints: the conversation as one text with tags (DynaEval §A.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from parley.pool import text_of
from parley.providers.openai import FINISH, OpenAICompatible, malformed, usage_in
from parley.providers.protocol import Reply, Request


@dataclass
class Provider(OpenAICompatible):
    """One model behind a completion endpoint; the human tag also ends its reply."""

    human_tag: str = "\n\nHuman:"
    assistant_tag: str = "\n\nAssistant:"

    home_env: ClassVar[str | None] = "COMPLETION_BASE_URL"
    key_env: ClassVar[str | None] = "COMPLETION_API_KEY"
    path: ClassVar[str] = "/completions"

    def __post_init__(self) -> None:
        if not self.human_tag.strip() or not self.assistant_tag.strip():
            raise ValueError("human_tag and assistant_tag must not be empty")
        self.human_tag, self.assistant_tag = unescaped(self.human_tag), unescaped(self.assistant_tag)
        self.stop = (*(self.stop or ()), self.human_tag)
        super().__post_init__()

    def body(self, request: Request) -> bytes:
        tags = {"user": self.human_tag, "system": self.human_tag, "assistant": self.assistant_tag}
        said = [f"{tags[turn.role]} {text_of(turn.content)}" for turn in request.turns]
        return self._head + b',"prompt":' + orjson.dumps("".join(said) + self.assistant_tag) + b"}"

    def reply(self, answer: Any) -> Reply:
        try:
            choice = answer["choices"][0]
            text = choice["text"]
        except (TypeError, KeyError, IndexError):
            raise malformed(answer, self.name) from None
        return Reply(
            content=str(text).removeprefix(" "),
            finish=FINISH.get(choice.get("finish_reason"), "other") if choice.get("finish_reason") else "stop",
            usage=usage_in(answer.get("usage")),
            model=answer.get("model") if isinstance(answer.get("model"), str) else None,
        )


def unescaped(tag: str) -> str:
    """A tag as typed in a shell: its \\n and \\t are line breaks and tabs."""
    return tag.replace("\\n", "\n").replace("\\t", "\t")
