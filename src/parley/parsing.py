"""What models write, taken apart: numbers, JSON objects and fenced blocks in the midst of words. All in bounded time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import orjson

from parley.errors import Unreadable

CANDIDATES = 64  # how many opening braces are tried before a reply counts as unreadable
DEEPEST = 50
SIGNS = "{}[]\":,'\\`"
MENDABLE = 2_000  # characters of a broken object that are looked at


def fenced(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a text with their tags; the last one may be left open. One pass, whatever the text is."""
    blocks: list[tuple[str, str]] = []
    tag: str | None = None
    body: list[str] = []
    for line in text.split("\n"):
        before, fence, after = line.partition("```")
        if tag is None and fence:
            tag, body = after.strip().partition(" ")[0].lower(), []
        elif tag is not None and fence:
            blocks.append((tag, "\n".join([*body, before] if before.strip() else body)))
            tag = None
        elif tag is not None:
            body.append(line)
    return [*blocks, (tag, "\n".join(body))] if tag is not None and body else blocks


def bare(text: str) -> bool:
    """Whether the reply is one plain word or number, not an object."""
    return "{" not in text and len(text) < 100


def number_in(value: Any) -> float | None:
    """A finite number, given as such or as its numeral."""
    if isinstance(value, str):
        try:
            value = float(value.strip().rstrip("."))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def object_in(text: str, names: set[str]) -> dict[str, Any]:
    """The last JSON object in a reply that has these names."""
    try:  # the common case: the reply is the object
        found = orjson.loads(text)
        if isinstance(found, dict) and names <= found.keys():
            return shallow(found)
    except orjson.JSONDecodeError:
        pass
    best: tuple[int, int, dict[str, Any]] | None = None
    missing: set[str] | None = None
    for start, end, found in objects_in(text):
        if not names <= found.keys():
            missing = missing or names - found.keys()
        elif best is None or (start < best[0] and end >= best[1]):  # the last one, or the larger one that it is part of
            best = start, end, found
    if best is not None:
        return shallow(best[2])
    if missing:
        raise Unreadable(f"the JSON object has no {' and no '.join(sorted(missing))}")
    raise Unreadable("no JSON object found")


def mended(text: str) -> str | None:
    """The object that a reply was meant to hold, where only the signs of its JSON are broken: quotes, commas, brackets.

    Every letter and digit must be in what comes out, so that `10 - 3` is not read as 10; and an end that is missing must
    follow a closed text or list, since a number may have been cut.
    """
    start, end = text.find("{"), text.rfind("}")
    broken = text[start : end + 1 if end > start else len(text)].rstrip()
    if start < 0 or len(broken) > MENDABLE or any(broken.count(mark) > CANDIDATES for mark in "{[(\\"):
        return None
    if end < start and broken[-1] not in "\"'],":
        return None
    if any(True for _ in objects_in(text)):
        return None  # an object that can be read, and is not the one that was asked for
    from json_repair import repair_json

    try:
        found = repair_json(broken, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    same = isinstance(found, str) and found.startswith("{") and said_in(found) == said_in(broken)
    return found if same else None


def said_in(text: str) -> str:
    """What is left of an object without the signs of JSON."""
    return "".join(mark for mark in text if mark not in SIGNS and not mark.isspace())


def shallow(found: dict[str, Any]) -> dict[str, Any]:
    """An object that is nested no deeper than anybody needs: what comes after it may walk through it."""
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        inner = [value for each in level for value in (each.values() if isinstance(each, dict) else each)]
        level = [value for value in inner if isinstance(value, dict | list)]
        if not level:
            return found
    raise Unreadable(f"the JSON object is nested more than {DEEPEST} levels deep")


def objects_in(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """JSON objects in a reply with their places, the last first; a bounded number of places is tried."""
    decoder, start = json.JSONDecoder(strict=False), len(text)
    for _ in range(CANDIDATES):
        start = text.rfind("{", 0, start)
        if start < 0:
            return
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield start, end, found
