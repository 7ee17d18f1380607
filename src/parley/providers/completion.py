"""Text-completion endpoints: the conversation as one text with tags (DynaEval §A.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from parley.match.protocol import Reply, Request
from parley.providers._capabilities import NOTHING
from parley.providers._endpoint import no_reply_error, object_in, unescape_typed
from parley.providers._error_bodies import objects_in_list
from parley.providers._replies import check_logprobs, parse_finish
from parley.providers.openai import FINISH, OpenAICompatible, choice_in, fields_of_answer, usage_in
from parley.rules.pool import text_of


@dataclass
class Provider(OpenAICompatible):
    """A model behind a text completion endpoint; a reply ends before `human_tag`."""

    human_tag: str = "\n\nHuman:"
    assistant_tag: str = "\n\nAssistant:"

    home_env: ClassVar[str | None] = "COMPLETION_BASE_URL"
    key_env: ClassVar[str | None] = "COMPLETION_API_KEY"
    path: ClassVar[str] = "/completions"
    system_role: ClassVar[bool] = False
    forms: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        self.human_tag, self.assistant_tag = (
            unescape_typed(self.human_tag),
            unescape_typed(self.assistant_tag),
        )
        if not self.human_tag.strip() or not self.assistant_tag.strip():
            raise ValueError("`human_tag` and `assistant_tag` must not be empty")
        self.stop = (*(self.stop or ()), self.human_tag)
        super().__post_init__()

    def body(self, request: Request, unsupported: frozenset[str] = NOTHING) -> bytes:
        tags = {"user": self.human_tag, "system": self.human_tag, "assistant": self.assistant_tag}
        said = [
            f"{tags[turn.role]} {self.untagged(text_of(turn.content))}" for turn in request.turns
        ]
        prompt = orjson.dumps("".join(said) + self.assistant_tag)
        return (
            self.encoded_head(unsupported)
            + self.encoded_seed(request, unsupported)
            + self.weighed(request)
            + b',"prompt":'
            + prompt
            + b"}"
        )

    def weighed(self, request: Request) -> bytes:
        return b"" if request.logprobs is None else b',"logprobs":%d' % request.logprobs

    def untagged(self, text: str) -> str:
        """A text in which no tag can be mistaken for a new speaker: a space goes before the last
        character of each tag."""
        for tag in (self.human_tag, self.assistant_tag):
            mark = tag.strip()
            text = text.replace(tag, tag.replace(mark, f"{mark[:-1]} {mark[-1]}"))
        return text

    def reply(self, answer: Any) -> Reply:
        choice = choice_in(answer, self.name)
        text = choice.get("text")
        if not isinstance(text, str):
            raise no_reply_error(answer, self.name)
        text, tag, _ = text.partition(self.human_tag)  # if the endpoint ignored `stop`
        return Reply(
            content=text.removeprefix(" "),
            finish="stop" if tag else parse_finish(choice.get("finish_reason"), FINISH),
            usage=usage_in(answer.get("usage")),
            **fields_of_answer(answer),
            logprobs=first_of(object_in(choice, "logprobs").get("top_logprobs")),
        )


def first_of(places: Any) -> dict[str, float] | None:
    """The possible first tokens of a reply with their log-probabilities; places with only white
    space are skipped."""
    found = (check_logprobs(place.items()) for place in objects_in_list(places))
    return next((tokens for tokens in found if tokens and "".join(tokens).strip()), None)
