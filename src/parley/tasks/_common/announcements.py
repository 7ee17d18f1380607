"""Where a reply says which answer it gives: in a JSON object, or by words that announce one and are not taken back."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any

from parley.rules.numerals import LONGEST_ANSWER
from parley.rules.parsing import objects_in

KEYS = ("answer", "choice", "option", "letter", "答案")
ANNOUNCEMENTS, BEFORE = 64, 60  # of one reply, and characters before each, that are looked at
IS = r"(?:is|was|would\s+be|should\s+be|must\s+be|has\s+to\s+be|will\s+be)\b"
SIGNS = r"(?:[\s:：*_`=]|\\[\[(]){0,20}"
SURELY = r"(?:(?:clearly|definitely|therefore|thus|obviously|indeed|simply)\b,?\s{1,3})?"
NAMED = rf"{SURELY}(?:(?:the\s{{1,3}})?(?:letter|option|choice)\b(?=[\s:(\[*_`\"']{{1,5}}[A-Za-z]\b))?{SIGNS}"
STATED = re.compile(
    rf"(?:####{SIGNS}|<answer>|(?P<boxed>\\boxed\{{)|\banswer\b(?:\s+to\s[^.:?!\n]{{1,80}}?\s|\s{{1,3}})(?={IS}){IS}{SIGNS}{NAMED}"
    rf"|\banswer[*_`\"']{{0,3}}\s{{0,3}}[:：=]{SIGNS}{NAMED}"
    rf"|^[#*_ \t]{{0,9}}(?:the\s|final\s|correct\s){{0,2}}answer[*_ \t]{{0,9}}$\s{{1,9}}"
    rf"|答案[】\]*_\s\"”]{{0,5}}(?:应该|应)?(?:[是为:：】\]])(?:选项|选)?{SIGNS})",
    re.IGNORECASE | re.MULTILINE,
)
# What announces a choice and nothing else, and what does if nothing else does.
CHOSEN = re.compile(
    rf"(?:\b(?:correct|right|best)\s+(?:option|choice|letter|one)\s+{IS}{SIGNS}{NAMED}"
    rf"|\bI(?:['’]d|['’]ll|\s+would|\s+will)?\s+(?:choose|pick|select|go\s+with)\b{SIGNS}{NAMED}"
    rf"|正确的?选项(?:应该|应)?[是为:：]{SIGNS}|(?:故|因此|所以|我)(?:应该|应|本题)?选择?(?:选项)?{SIGNS})",
    re.IGNORECASE,
)
WEAK = re.compile(rf"(?:\banswer\b{SIGNS}{NAMED}|答案{SIGNS}|选择?(?:选项|[是为])?{SIGNS})", re.IGNORECASE)
# What stands before an announcement that is none.
CLAUSE = re.compile(r"[.!?;,:\n。！？；，：]")
UNMEANT = re.compile(
    r"(?:\b(?:wrong|incorrect|false|not|never|cannot|unable|any|no|if|suppose|assume|assuming|than|might|could|may|who|students?"
    r"|worst|least|opposite|other|another|first|initial|previous|earlier|original|tempting)"
    r"|n['’]t)(?:\s+(?:think|believe|say|agree|assume|that|to|be|the|this|my|your|its|final|correct|right|best|likely|an?))*\s*\Z"
    r"|(?:不(?!难|过)|非|勿|误|错误?的?|别|若|如果|假如|假设|要是|有的|有人|同学|学生)[^\s]{0,6}\Z",
    re.IGNORECASE,
)


def objects(words: str) -> tuple[list[dict[str, Any]], str]:
    """The JSON objects in a reply that have an answer, and the words around them."""
    found, around, past = [], [], 0
    for start, end, each in objects_in(words):
        if any(isinstance(each.get(key), str | int | float) for key in KEYS):
            found.append({key: each[key] for key in KEYS if isinstance(each.get(key), str | int | float)})
            around.append(words[past:start])
            past = end
    return found, " ".join([*around, words[past:]])


def announced(words: str, *patterns: re.Pattern[str]) -> Iterator[str]:
    """What follows an announcement on its line, the last first; those that deny or suppose something are left out."""
    places = sorted((found.start(), found) for pattern in patterns for found in deque(pattern.finditer(words), ANNOUNCEMENTS))
    for start, found in reversed(places):
        before = CLAUSE.split(words[max(0, start - BEFORE) : start])[-1]
        if not UNMEANT.search(before):
            rest = words[found.end() : found.end() + LONGEST_ANSWER].partition("\n")[0].partition("</answer>")[0]
            yield within(rest) if found.groupdict().get("boxed") else rest


def within(rest: str) -> str:
    """What stands before the brace that closes a box."""
    depth = 0
    for at, mark in enumerate(rest):
        depth += (mark == "{") - (mark == "}")
        if depth < 0:
            return rest[:at]
    return rest
