"""Checks replies, so that they can be recorded, whoever gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, get_args

import orjson

from parley.errors import ParticipantError
from parley.match.protocol import NO_USAGE, DeviceSetup, DeviceUse, Finish, Reply, Usage
from parley.providers._secrets import redact
from parley.rules.pool import Content, ContentPart, Turn, text_of

# of one call: a larger count is invalid, so that sums of many fit into a record
MOST_TOKENS = 2**31
LONGEST_NAME = 200  # characters


def fold_system_turn(turns: list[Turn]) -> list[Turn]:
    """Move the system text to the beginning of the first user turn."""
    if turns[0].role != "system":
        return turns
    return [Turn("user", f"{text_of(turns[0].content)}\n\n{text_of(turns[1].content)}"), *turns[2:]]


def parse_finish(reason: Any, known: Mapping[str, Finish]) -> Finish:
    """How a reply ended, in Parley's words; without a reason it is complete."""
    return (
        "stop" if not reason else known.get(reason, "other") if isinstance(reason, str) else "other"
    )


def check_reply(given: Any, who: str) -> Reply:
    """Check a reply from any source; a reply without text is an error."""
    if isinstance(given, str):
        return Reply(given)
    if not isinstance(given, Reply):
        raise ParticipantError(
            f"{who} must return a text or a parley.match.protocol.Reply, not {type(given).__name__}"
        )
    usage, latency = given.usage, given.latency
    return Reply(
        content=check_content(given.content, who),
        reasoning=given.reasoning if isinstance(given.reasoning, str) else "",
        finish=given.finish
        if isinstance(given.finish, str) and given.finish in get_args(Finish)
        else "other",
        usage=Usage(*(check_token_count(getattr(usage, each.name)) for each in fields(Usage)))
        if isinstance(usage, Usage)
        else NO_USAGE,
        model_served=printable_name(given.model_served),
        response_id=check_id(given.response_id),
        request_id=check_id(given.request_id),
        system_fingerprint=check_id(given.system_fingerprint),
        latency=float(latency)
        if isinstance(latency, int | float) and 0 <= latency < MOST_TOKENS
        else None,
        provider_state=check_provider_state(given.provider_state, who),
        sent=given.sent if isinstance(given.sent, str) else None,
        left_out=tuple(filter(None, map(printable_name, given.left_out)))
        if isinstance(given.left_out, tuple)
        else (),
        logprobs=check_logprobs(given.logprobs.items())
        if isinstance(given.logprobs, Mapping)
        else None,
        device=check_device(given.device),
    )


def check_device(used: Any) -> DeviceUse | None:
    """The time of a device; None if it is not valid."""
    if not isinstance(used, DeviceUse) or not isinstance(used.setup, DeviceSetup):
        return None
    known = isinstance(used.seconds, int | float) and 0 <= used.seconds < MOST_TOKENS
    return used if known else None


def check_content(content: Any, who: str) -> Content:
    """The content of a reply: a text, or a tuple of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, tuple):
        raise ParticipantError(
            f"{who} must return a reply whose content is text, not {type(content).__name__}"
        )
    for part in content:
        if not (
            isinstance(part, ContentPart)
            and isinstance(part.type, str)
            and isinstance(part.text, str)
        ):
            raise ParticipantError(
                f"{who} returned a reply with an invalid part ({type(part).__name__}): every part "
                "must be a ContentPart with a text"
            )
    return tuple(
        ContentPart(replace_unencodable(part.type), replace_unencodable(part.text))
        for part in content
    )


def check_provider_state(state: Any, who: str) -> Any:
    """The state to send back with the next turn, as it will be read from a record."""
    if state is None:
        return None
    try:
        return orjson.loads(orjson.dumps(state))
    except (TypeError, ValueError, RecursionError) as wrong:
        raise ParticipantError(
            f"{who} returned a provider_state that is not JSON: {wrong}"
        ) from None


def check_logprobs(found: Iterable[tuple[Any, Any]]) -> dict[str, float] | None:
    """Tokens with their log-probabilities, without invalid ones; None if there are none."""
    kept = {
        token: float(chance)
        for token, chance in found
        if isinstance(token, str)
        and isinstance(chance, int | float)
        and not isinstance(chance, bool)
        and chance <= 0
    }
    return kept or None


def check_token_count(tokens: Any) -> int | None:
    """A count of tokens; None if it is not valid."""
    return tokens if type(tokens) is int and 0 <= tokens < MOST_TOKENS else None


def printable_name(name: Any) -> str | None:
    """The printable characters of a name."""
    if not isinstance(name, str):
        return None
    if not name.isprintable():  # a key that such characters had broken into parts is whole again
        name = redact("".join(filter(str.isprintable, name)))
    return name[:LONGEST_NAME] or None


def check_id(given: Any) -> str | None:
    """An id that an endpoint gave; None if it is not a plausible one."""
    is_plausible = isinstance(given, str) and given.isprintable() and len(given) <= LONGEST_NAME
    return given or None if is_plausible else None


def replace_unencodable(text: str) -> str:
    """A text without lone surrogates and NULs, which cannot be recorded."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
