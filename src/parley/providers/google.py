"""Google's Gemini API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

import orjson

from parley.errors import Refused, Rejected
from parley.match.protocol import Finish, Reply, Request, Usage
from parley.providers._capabilities import NOTHING
from parley.providers._endpoint import (
    Endpoint,
    malformed,
    objects_in,
    part_of,
    path_of,
    returned,
    spoken,
    words,
)
from parley.providers._replies import carried, counted, finish_in, folded, printable
from parley.providers._schemas import LENGTHS
from parley.rules.pool import Turn, text_of

FAMILY = "google"
# said with status 400
WRONG_KEY = re.compile(r"API_KEY_INVALID|API key (?:not valid|expired|not found)", re.IGNORECASE)
NAMES = {"temperature": "temperature", "top_p": "topP", "seed": "seed", "stop": "stopSequences"}
BLOCKED = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "MODEL_ARMOR",
)
FINISH: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(BLOCKED, "filter"),
}


@dataclass
class Provider(Endpoint):
    """Google's Gemini API."""

    seed: int | None = None
    thinking_budget: int | None = None  # tokens; 0 for none, -1 for as many as it likes
    thinking_level: str = ""  # minimal, low, medium or high, for models that take a level
    # let it show a summary of its thoughts; None: where thinking was asked for
    include_thoughts: bool | None = None

    home: ClassVar[str | None] = "https://generativelanguage.googleapis.com/v1beta"
    home_env: ClassVar[str | None] = "GOOGLE_GEMINI_BASE_URL"
    key_env: ClassVar[str | None] = "GEMINI_API_KEY"
    # which wins where both are set, as in Google's own clients
    key_env_first: ClassVar[tuple[str, ...]] = ("GOOGLE_API_KEY",)
    key_needed: ClassVar[bool] = True
    key_header: ClassVar[str] = "x-goog-api-key"
    seller: ClassVar[str | None] = FAMILY
    small: ClassVar[str | None] = "gemini-2.5-flash-lite"
    caches: ClassVar[bool | None] = True
    thinks_by: ClassVar[tuple[str, ...] | None] = ("thinking_budget", "thinking_level")
    optional: ClassVar[tuple[str, ...]] = tuple(NAMES)
    schema_limits: ClassVar[frozenset[str] | None] = LENGTHS | {"minimum", "maximum"}

    def __post_init__(self) -> None:
        if self.thinking_budget is not None and self.thinking_level:
            raise ValueError(
                "a model takes thinking_budget or thinking_level, not both: leave one of them out"
            )
        super().__post_init__()

    def route(self, base: str) -> tuple[str, str]:
        version = "" if re.search(r"/v\d\w*$", path_of(base)) else "/v1beta"
        model = (
            self.name
            if self.name.startswith(("models/", "tunedModels/"))
            else f"models/{self.name}"
        )
        return base, f"{version}/{quote(model, safe='/')}:generateContent"

    async def complete(self, request: Request) -> Reply:
        try:
            return await super().complete(request)
        except Rejected as rejected:
            if WRONG_KEY.search(rejected.answer):
                raise Refused(f"{rejected} (check the key)", kind="key") from None
            raise

    def head(self, lacks: frozenset[str]) -> dict[str, Any]:
        """The settings of a request; they stand in one object, which the form completes."""
        settings = {NAMES[name]: value for name, value in self.chosen(lacks).items()}
        if self.max_tokens is not None:
            settings["maxOutputTokens"] = self.max_tokens
        level, budget, shown = self.thinking_level, self.thinking_budget, self.include_thoughts
        shown = bool(level or budget) if shown is None else shown
        thinking = {
            "thinkingBudget": budget,
            "thinkingLevel": level or None,
            "includeThoughts": shown or None,
        }
        if wanted := {name: value for name, value in thinking.items() if value is not None}:
            settings["thinkingConfig"] = wanted
        return settings

    def encoded_form(self, form: str, schema: Mapping[str, Any]) -> bytes:
        strict = {"responseJsonSchema": self.dialect(schema)[0]} if form == "json_schema" else {}
        return orjson.dumps({"responseMimeType": "application/json", **strict})[1:-1]

    def body(self, request: Request, lacks: frozenset[str] = NOTHING) -> bytes:
        turns = folded(request.turns) if "system" in lacks else request.turns
        system = b""
        if turns[0].role == "system":
            system, turns = b'"systemInstruction":{' + parts(turns[0]) + b"},", turns[1:]
        # A model's turn without words is left out: the API takes no empty parts, and two questions
        # in a row.
        contents = b",".join(
            [content(turn) for turn in turns if turn.role == "user" or text_of(turn.content)]
        )
        settings = b",".join(filter(None, (self.headed(lacks)[1:], self.formed(request, lacks))))
        config = b'"generationConfig":{' + settings + b"}," if settings else b""
        return b"{" + system + config + b'"contents":[' + contents + b"]}"

    def reply(self, answer: Any) -> Reply:
        """The reply in an answer; one that was blocked, or whose question was, is a reply without
        words."""
        candidates = objects_in(answer.get("candidates") if isinstance(answer, dict) else None)
        blocked = part_of(answer, "promptFeedback").get("blockReason")
        if not candidates and not blocked:
            raise malformed(answer, self.name)
        candidate = candidates[0] if candidates else {}
        said = objects_in(part_of(candidate, "content").get("parts"))
        signed = any(part.get("thoughtSignature") for part in said)
        return Reply(
            content="".join(words(part.get("text")) for part in said if not part.get("thought")),
            reasoning="\n".join(words(part.get("text")) for part in said if part.get("thought")),
            finish=finish_in(candidate.get("finishReason"), FINISH) if candidates else "filter",
            usage=usage_in(part_of(answer, "usageMetadata")),
            model=printable(answer.get("modelVersion")),
            provider_state=carried({FAMILY: said}, self.name) if signed else None,
        )


def content(turn: Turn) -> bytes:
    """A turn as sent; parts that were signed go back as they came."""
    if kept := returned(turn, FAMILY):
        return b'{"role":"model","parts":' + orjson.dumps(kept) + b"}"
    return (
        (b'{"role":"model",' if turn.role == "assistant" else b'{"role":"user",')
        + parts(turn)
        + b"}"
    )


def parts(turn: Turn) -> bytes:
    return b'"parts":[{"text":' + spoken(turn) + b"}]"


def usage_in(found: dict[str, Any]) -> Usage:
    """Token counts. Thoughts are counted apart from the words there; both are output."""
    words, thoughts = (
        counted(found.get("candidatesTokenCount")),
        counted(found.get("thoughtsTokenCount")),
    )
    return Usage(
        counted(found.get("promptTokenCount")),
        counted(found.get("cachedContentTokenCount")),
        None if words is None and thoughts is None else (words or 0) + (thoughts or 0),
        thoughts,
    )
