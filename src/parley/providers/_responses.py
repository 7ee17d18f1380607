"""OpenAI's Responses API, with nothing stored on the server: its state travels with the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from parley.match.protocol import Finish, Reply, Usage
from parley.providers._endpoint import (
    find_provider_state,
    join_text_parts,
    no_reply_error,
    object_in,
)
from parley.providers._error_bodies import objects_in_list
from parley.providers._replies import (
    check_id,
    check_provider_state,
    check_token_count,
    parse_finish,
    printable_name,
)
from parley.rules.pool import Turn, text_of

PATH = "/responses"
FAMILY = "responses"
BROKEN_OFF: dict[str, Finish] = {"max_output_tokens": "length", "content_filter": "filter"}


def request_head(
    name: str, options: dict[str, Any], limit: int | None, summary: str, unsupported: frozenset[str]
) -> dict[str, Any]:
    """The part that is the same in all requests for a model."""
    effort = options.pop("reasoning_effort", "")
    reasoning = {key: value for key, value in (("effort", effort), ("summary", summary)) if value}
    sent = {"model": name, "store": False, **options}
    if "encrypted_content" not in unsupported:
        sent["include"] = ["reasoning.encrypted_content"]
    if limit is not None:
        sent["max_output_tokens"] = limit
    return {**sent, "reasoning": reasoning} if reasoning else sent


def encode_format(kind: str, schema: Mapping[str, Any], strict: bool) -> bytes:
    """The part of a request that asks for a format."""
    named = {"name": "reply", "strict": strict, "schema": schema} if kind == "json_schema" else {}
    return b',"text":' + orjson.dumps({"format": {"type": kind, **named}})


def encode_turns(turns: list[Turn]) -> bytes:
    """The system text as instructions, the turns as input items."""
    instructions = b""
    if turns[0].role == "system":
        instructions, turns = (
            b',"instructions":' + orjson.dumps(text_of(turns[0].content)),
            turns[1:],
        )
    return instructions + b',"input":[' + b",".join([encode_turn(turn) for turn in turns]) + b"]"


def encode_turn(turn: Turn) -> bytes:
    """A turn as items; a reply goes back together with its reasoning."""
    if kept := find_provider_state(turn, FAMILY):
        return b",".join([orjson.dumps(item) for item in kept])
    return orjson.dumps({"role": turn.role, "content": text_of(turn.content)})


def reply_in_answer(answer: Any, name: str) -> Reply:
    """The reply in an answer, with its reasoning as it must be sent back."""
    if not isinstance(answer, dict) or not isinstance(answer.get("output"), list):
        raise no_reply_error(answer, name)
    said, thought, refused, kept = [], [], [], []
    for item in objects_in_list(answer["output"]):
        if item.get("type") == "reasoning":
            thought.append(
                join_text_parts(item.get("summary")) or join_text_parts(item.get("content"))
            )
            # without it the item is a reference to nothing
            if isinstance(item.get("encrypted_content"), str):
                kept.append(item)
        elif item.get("type") == "message":
            text = join_text_parts(item.get("content"))
            refused += [
                join_text_parts(part.get("refusal"))
                for part in objects_in_list(item.get("content"))
            ]
            if item.get("phase") != "commentary":
                said.append(text)
            if text:  # its id would be looked up on the server, where nothing is kept
                phase = {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
                kept.append({"role": "assistant", "content": text, **phase})
    wanted = any(item.keys() != {"role", "content"} for item in kept) and "role" in kept[-1]
    usage, broken_off = object_in(answer, "usage"), answer.get("status") not in (None, "completed")
    ended = (
        (object_in(answer, "incomplete_details").get("reason") or "unknown") if broken_off else None
    )
    return Reply(
        content="".join(said) or "".join(refused),
        reasoning="\n".join(filter(None, thought)),
        finish=parse_finish(ended, BROKEN_OFF),
        usage=Usage(
            check_token_count(usage.get("input_tokens")),
            check_token_count(object_in(usage, "input_tokens_details").get("cached_tokens")),
            check_token_count(usage.get("output_tokens")),
            check_token_count(object_in(usage, "output_tokens_details").get("reasoning_tokens")),
        ),
        model_served=printable_name(answer.get("model")),
        response_id=check_id(answer.get("id")),
        provider_state=check_provider_state({FAMILY: kept}, name) if wanted else None,
    )
