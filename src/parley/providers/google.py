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
    DERIVED,
    Endpoint,
    Seed,
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
    fold_system_turn,
    parse_finish,
    printable_name,
)
from parley.providers._schemas import LENGTHS
from parley.rules.pool import Turn, text_of

FAMILY = "google"
# comes with status 400
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

    seed: Seed = DERIVED
    thinking_budget: int | None = None  # tokens; 0 for none, -1 for as many as it likes
    thinking_level: str = ""  # minimal, low, medium or high, for models that take a level
    # whether to ask for a summary of its thoughts; None: if thinking is on
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
                "`thinking_budget` and `thinking_level` cannot be combined: remove one of them"
            )
        super().__post_init__()

    def route(self, base: str) -> tuple[str, str]:
        version = "" if re.search(r"/v\d\w*$", path_without_query(base)) else "/v1beta"
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
                raise Refused(f"{rejected} (check the API key)", kind="key") from None
            raise

    def head(self, unsupported: frozenset[str]) -> dict[str, Any]:
        """The settings of a request; the format is added to the same object."""
        settings = {NAMES[name]: value for name, value in self.options_to_send(unsupported).items()}
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

    def encode_schema(self, form: str, schema: Mapping[str, Any]) -> bytes:
        strict = {"responseJsonSchema": self.dialect(schema)[0]} if form == "json_schema" else {}
        return orjson.dumps({"responseMimeType": "application/json", **strict})[1:-1]

    def body(self, request: Request, unsupported: frozenset[str] = NOTHING) -> bytes:
        turns = fold_system_turn(request.turns) if "system" in unsupported else request.turns
        system = b""
        if turns[0].role == "system":
            system, turns = b'"systemInstruction":{' + encode_parts(turns[0]) + b"},", turns[1:]
        # An empty turn of a model is left out: the API rejects empty parts, but accepts two
        # questions in a row.
        contents = b",".join(
            [encode_content(turn) for turn in turns if turn.role == "user" or text_of(turn.content)]
        )
        seed = self.derived_seed(request, unsupported)
        settings = b",".join(
            filter(
                None,
                (
                    self.encoded_head(unsupported)[1:],
                    b"" if seed is None else b'"seed":%d' % seed,
                    self.encoded_schema(request, unsupported),
                ),
            )
        )
        config = b'"generationConfig":{' + settings + b"}," if settings else b""
        return b"{" + system + config + b'"contents":[' + contents + b"]}"

    def reply(self, answer: Any) -> Reply:
        """The reply in an answer; if the reply or its question was blocked, the reply is empty."""
        candidates = objects_in_list(answer.get("candidates") if isinstance(answer, dict) else None)
        blocked = object_in(answer, "promptFeedback").get("blockReason")
        if not candidates and not blocked:
            raise no_reply_error(answer, self.name)
        candidate = candidates[0] if candidates else {}
        said = objects_in_list(object_in(candidate, "content").get("parts"))
        signed = any(part.get("thoughtSignature") for part in said)
        return Reply(
            content="".join(
                join_text_parts(part.get("text")) for part in said if not part.get("thought")
            ),
            reasoning="\n".join(
                join_text_parts(part.get("text")) for part in said if part.get("thought")
            ),
            finish=parse_finish(candidate.get("finishReason"), FINISH) if candidates else "filter",
            usage=usage_in(object_in(answer, "usageMetadata")),
            model_served=printable_name(answer.get("modelVersion")),
            response_id=check_id(answer.get("responseId")),
            provider_state=check_provider_state({FAMILY: said}, self.name) if signed else None,
        )


def encode_content(turn: Turn) -> bytes:
    """A turn as sent; signed parts go back unchanged."""
    if kept := find_provider_state(turn, FAMILY):
        return b'{"role":"model","parts":' + orjson.dumps(kept) + b"}"
    return (
        (b'{"role":"model",' if turn.role == "assistant" else b'{"role":"user",')
        + encode_parts(turn)
        + b"}"
    )


def encode_parts(turn: Turn) -> bytes:
    return b'"parts":[{"text":' + encode_text(turn) + b"}]"


def usage_in(found: dict[str, Any]) -> Usage:
    """Token counts. The API counts thoughts separately; here they are part of the output."""
    words, thoughts = (
        check_token_count(found.get("candidatesTokenCount")),
        check_token_count(found.get("thoughtsTokenCount")),
    )
    return Usage(
        check_token_count(found.get("promptTokenCount")),
        check_token_count(found.get("cachedContentTokenCount")),
        None if words is None and thoughts is None else (words or 0) + (thoughts or 0),
        thoughts,
    )
