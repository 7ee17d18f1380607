"""Parse replies: find numbers, JSON objects and fenced blocks within prose, in bounded time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import orjson

from parley.errors import Unreadable

DEEPEST = 50
# of a whole number; a longer one would overflow a float
DIGITS = 300
SIGNS = "{}[]\":,'\\`"
# limits for repairing a broken object: its characters, and brackets of one kind
MENDABLE, TANGLED = 2_000, 64
OPENED = re.compile(r'\{(?=\s*+["}])')
SHORT = 2_000  # characters
# characters: a decoder error counts all lines before it, so the text is cut from time to time
NEAR = 4_096
TOO_DEEP = f"the JSON object is nested more than {DEEPEST} levels deep"
BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)


def find_fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Find the fenced blocks of a text and their tags, in one pass; the last one need not be
    closed."""
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


def is_single_word(text: str) -> bool:
    """Whether the reply is one plain word or number, not an object."""
    return "{" not in text and len(text) < 100


def finite_number(value: Any) -> float | None:
    """A finite number, given as a number or as a numeral; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value.strip().rstrip("."))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def find_object(text: str, names: set[str]) -> dict[str, Any]:
    """Find the one JSON object in a reply that has these names.

    Any object with one of the names counts as an answer, even if it is incomplete or inside a
    fenced block. Several different answers are refused, so that an object that a judge only quotes
    is never read as its own.
    """
    if (simple := parse_simple_object(text, names)) is not None:
        return simple
    answers: dict[str, dict[str, Any]] = {}
    around: list[str] = []
    past = 0
    for start, end, found in find_objects(text):
        around.append(text[past:start])
        past = end
        for answer in find_answers(check_object(found), names):
            said = json.dumps(
                {name: answer[name] for name in sorted(names & answer.keys())}, sort_keys=True
            )
            answers.setdefault(said, answer)
    if len(answers) > 1 or (answers and begins_object(" ".join([*around, text[past:]]), names)):
        raise Unreadable("several different answers in one reply: give one")
    if not answers:
        raise Unreadable(
            f"the JSON object has no {' and no '.join(sorted(names))}"
            if past
            else "no JSON object found"
        )
    (found,) = answers.values()
    if missing := names - found.keys():
        raise Unreadable(f"the JSON object has no {' and no '.join(sorted(missing))}")
    return found


def parse_simple_object(text: str, names: set[str]) -> dict[str, Any] | None:
    """Parse a reply that is one short flat object with each of these names once, and nothing else:
    the usual case, done fast."""
    if len(text) > SHORT or text[:1] != "{" or text[-1:] != "}" or "\\" in text:
        return None
    try:
        found = orjson.loads(text)
    except ValueError:
        return None
    if not names <= found.keys() or any(isinstance(value, dict | list) for value in found.values()):
        return None
    return found if all(text.count(f'"{name}"') == 1 for name in names) else None


def find_answers(found: dict[str, Any], names: set[str]) -> Iterator[dict[str, Any]]:
    """The object itself if it has one of the names, otherwise the objects inside it that do."""
    waiting: list[Any] = [found]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict) and not names.isdisjoint(value):
            yield value
        elif isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)


def begins_object(text: str, names: set[str]) -> bool:
    """Whether an object with one of these names begins here, even if it is malformed."""
    key = rf"[{{,]\s*+[\"'`]?(?:{'|'.join(map(re.escape, names))})[\"'`]?\s*+:"
    return (brace := text.find("{")) >= 0 and re.compile(key).search(text, brace) is not None


def repair_object(text: str) -> str | None:
    """Repair an object in which only the JSON syntax is broken: quotes, commas, brackets.

    The repaired object must contain every letter and digit, so that `10 - 3` is not read as 10. A
    missing end must follow a closed string or list, since a number may have been cut.
    """
    start, end = text.find("{"), text.rfind("}")
    broken = text[start : end + 1 if end > start else len(text)].rstrip()
    if start < 0 or len(broken) > MENDABLE or any(broken.count(mark) > TANGLED for mark in "{[(\\"):
        return None
    if end < start and broken[-1] not in "\"'],":
        return None
    from json_repair import repair_json

    try:
        if any(True for _ in find_objects(text)):
            return None  # the reply has a readable object, which is not the requested one
        found = repair_json(broken, ensure_ascii=False)
    except (Unreadable, ValueError, RecursionError):
        return None
    same = (
        isinstance(found, str)
        and found.startswith("{")
        and strip_json_signs(found) == strip_json_signs(broken)
    )
    return found if same else None


def strip_json_signs(text: str) -> str:
    """Remove JSON punctuation and all spaces, to compare the content of two texts."""
    return "".join(mark for mark in text if mark not in SIGNS and not mark.isspace())


def check_object(found: dict[str, Any]) -> dict[str, Any]:
    """Check that an object is not too deep and that all its numbers are finite; return it."""
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        inner = [
            value for each in level for value in (each.values() if isinstance(each, dict) else each)
        ]
        if any(isinstance(value, float) and not math.isfinite(value) for value in inner):
            raise Unreadable("the JSON object holds a number that is not finite")
        level = [value for value in inner if isinstance(value, dict | list)]
        if not level:
            return found
    raise Unreadable(TOO_DEEP)


def find_objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The outermost JSON objects in a reply with their positions, in order.

    When decoding fails, all objects that were open fail with it and are not tried again. So every
    character is read only a few times, whatever the reply is.
    """
    failed: set[int] = set()
    rest, base = text, 0
    place = OPENED.search(text)
    while place:
        start, end = place.start(), place.end()
        if start - base > NEAR:
            rest, base = text[start:], start
        if start not in failed:
            try:
                found, past = DECODER.raw_decode(rest, start - base)
                end = base + past
                yield start, end, found
            except json.JSONDecodeError as wrong:
                failed.update(find_open_objects(text, start, base + wrong.pos))
            except RecursionError:
                raise Unreadable(TOO_DEEP) from None
        place = OPENED.search(text, end)


def find_open_objects(text: str, start: int, end: int) -> list[int]:
    """Find the positions of all brackets that are still open at the end of a piece of JSON."""
    stack: list[int] = []
    for mark in BRACKETS.finditer(text, start, end):
        if mark[0] in "{[":
            stack.append(mark.start())
        elif mark[0] in "}]" and stack:
            stack.pop()
    return stack


def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object, but refuse a name with two different values."""
    found = dict(pairs)
    if len(found) < len(pairs) and any(found[name] != value for name, value in pairs):
        raise Unreadable("a name stands twice in the JSON object, with different values")
    return found


def parse_integer(digits: str) -> float:
    return int(digits) if len(digits) <= DIGITS else math.inf


DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=refuse_duplicates, parse_int=parse_integer
)


def is_deeper_than(value: Any, most: int) -> bool:
    """Whether lists and objects have more nested levels than this. Code that walks them would reach
    Python's recursion limit."""
    level = [value]
    for _ in range(most + 1):
        holders = [each for each in level if isinstance(each, dict | list)]
        if not holders:
            return False
        level = [
            inner
            for each in holders
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return True
