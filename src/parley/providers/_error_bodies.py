"""Reads an endpoint's answer: its JSON, an error in it, how long to wait."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import Any

import orjson

from parley.providers._endpoint_health import LONGEST_PAUSE, Retryable
from parley.providers._secrets import redact
from parley.tables import shorten

LOOKED_AT = 50_000  # characters of an error, of which a few hundred are shown
LIMITED_WORDS = re.compile(r"rate.?limit|resource.?exhausted|too.?many.?requests", re.IGNORECASE)
PASSING_WORDS = re.compile(r"overload|server.?error|time.?out|unavailable", re.IGNORECASE)
# how Google says how long to wait
RETRY_DELAY = re.compile(r"""retryDelay["']\s*:\s*["'](\d{1,9}(?:\.\d{1,9})?)s""")


def find_wait(headers: Mapping[str, str], said: str) -> float:
    """The seconds that an answer asks to wait: from its headers, the most exact first, else from
    its text."""
    if exact := re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", headers.get("Retry-After-Ms", "").strip()):
        return parse_retry_after(str(float(exact[0]) / 1000))
    found = RETRY_DELAY.search(said)
    return parse_retry_after(headers.get("Retry-After") or (found[1] if found else ""))


def parse_retry_after(header: str) -> float:
    """The seconds that an endpoint asks to wait, given as a number or a date, up to a limit; 0 if
    it does not say."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_tz(header)
            seconds = mktime_tz(date) - time.time() if date else 0.0
        except (ValueError, OverflowError, TypeError, IndexError):  # a date that no calendar has
            seconds = 0.0
    return min(LONGEST_PAUSE, max(0.0, seconds))


def find_error(answer: Any) -> Any:
    """The error in a body that came with status 200, if there is one."""
    if not isinstance(answer, dict) or answer.get("choices"):
        return None
    return answer if answer.get("object") == "error" else answer.get("error")


def read_error(error: Any) -> tuple[int, str, str]:
    """The status that an error in a body stands for, 0 if unknown; its message, and the whole
    error."""
    if not isinstance(error, dict):
        return 0, shorten(error, LOOKED_AT), ""
    whole, said = shorten(error, LOOKED_AT), shorten(error.get("message") or error, LOOKED_AT)
    code = shorten(error.get("code") or "")
    if re.fullmatch(r"[45]\d\d", code):
        return int(code), said, whole
    named = f"{code} {shorten(error.get('type'))} {shorten(error.get('status'))}"
    return (
        429 if LIMITED_WORDS.search(named) else 503 if PASSING_WORDS.search(named) else 0,
        said,
        whole,
    )


def parse_answer(answer: bytes) -> Any:
    """The JSON of an answer; accepts lone surrogates, raw control characters and broken UTF-8, as
    real endpoints send them."""
    try:
        return orjson.loads(answer)
    except orjson.JSONDecodeError:
        try:
            found = json.loads(answer.decode("utf-8-sig", "replace"), strict=False)
            return json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            said = redact(answer[:LOOKED_AT].decode("utf-8", "replace"))
            fault = (
                f"the response is not JSON: {said[:80]!r}" if answer else "the response is empty"
            )
            raise Retryable(fault, unsure=True) from None


def objects_in_list(found: Any) -> list[dict[str, Any]]:
    """The objects of a list; everything else is left out."""
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
