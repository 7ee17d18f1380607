"""How secrets are found in a text, whole or in part, and taken out of it."""

from __future__ import annotations

import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

CUT = 12  # characters of a secret that are one themselves, wherever in it they stand
BLOCK = 6  # of which every CUT characters hold one that begins at a multiple of it: so few places of a text are looked at
# What may stand within a secret and not be seen, or only break its line: spaces, signs without width, tags.
UNSEEN = "\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff"
TAG = r"\\[nrt]|</?(?:wbr|br|b|i|em|u|code|span|mark)\s*/?>"
GAP = re.compile(rf"(?:[\s{UNSEEN}]|{TAG})+")
NO_WIDTH = dict.fromkeys(sign for sign in range(0xAD, 0xFF00) if re.match(f"[{UNSEEN}]", chr(sign)))
HIDDEN = ("***", "...", "…", "•", "\\u202", " end", "xxxx", "XXXX", "###", "redacted", "REDACTED")  # where a part was left out
MASK = re.compile(
    r"\*{3,}|\.{3,}|…|\\u2026|•{3,}|(?:\\u2022){3,}|x{4,}|X{4,}|#{3,}|[\[<(]\W?redacted\W?[\])>]"
    r"|\bend(?:ing|s) (?:in|with):? ['\"`]?",
    re.IGNORECASE,
)
BESIDE = 200  # characters on either side of a mask that are looked at
TELLING = 4  # characters of a key that are too many to show
MOST_MASKS = 1000  # of one text that are looked at


def forms_of(value: str) -> Iterator[str]:
    """A value as it is, in hexadecimal, and what is the same in all base64 of texts that hold it, wherever it stands in them."""
    yield value
    coded = value.encode()
    yield from (coded.hex(), coded.hex().upper())
    for ahead in range(3):
        whole = b64encode(b" " * ahead + coded).rstrip(b"=").decode()
        inside = whole[-(-ahead * 8 // 6) : len(whole) - bool((ahead + len(coded)) % 3)]
        if len(inside) > CUT:
            yield from {inside, inside.translate(str.maketrans("+/", "-_"))}


class Secrets:
    """Some secrets, made ready to be looked for in many texts."""

    def __init__(self, values: Collection[str]) -> None:
        self.values = sorted(values, key=len, reverse=True)
        self._short = [value for value in self.values if len(value) < CUT]
        long = [closed(value) for value in self.values if len(value) >= CUT]
        self._runs = {value[at : at + CUT] for value in long for at in range(len(value) - CUT + 1)}
        self._blocks = {run[at : at + BLOCK] for run in self._runs for at in range(CUT - BLOCK + 1)}

    def shown(self, text: str) -> int:
        """How many characters of secrets a text shows."""
        short = sum(text.count(value) * len(value) for value in self._short)
        return short + sum(end - start for start, end in self._found(text))

    def without(self, text: str) -> str:
        """A text in which every secret, and every part of one that is long enough, is replaced."""
        parts, last, places = [], 0, None
        for start, end in self._found(text):
            places = places or Places(text)
            parts += [text[last : places.of(start)], "[key]"]
            last = places.of(end - 1) + 1
        text = "".join(parts) + text[last:] if parts else text
        for value in self._short:
            text = text.replace(value, "[key]")
        return text

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Where parts of secrets stand in a text, counted without its gaps."""
        blocks, runs, end, text = self._blocks, self._runs, 0, closed(text)
        if blocks.isdisjoint([text[at : at + BLOCK] for at in range(0, len(text), BLOCK)]):
            return  # nearly no text holds any: that is seen at a glance
        for at in range(0, len(text) - BLOCK + 1, BLOCK):
            if at < end or text[at : at + BLOCK] not in blocks:
                continue
            for start in range(max(end, at - CUT + BLOCK), at + 1):
                if text[start : start + CUT] in runs:
                    end = start + CUT
                    while text[end - CUT + 1 : end + 1] in runs and end < len(text):
                        end += 1
                    yield start, end
                    break


def closed(text: str) -> str:
    """A text without its gaps."""
    if "\\" in text or "<" in text:
        return GAP.sub("", text)
    text = "".join(text.split())
    return text if text.isascii() else text.translate(NO_WIDTH)


class Places:
    """Where the characters of a text without its gaps stand in it."""

    def __init__(self, text: str) -> None:
        self._starts, self._shifts, shift = [0], [0], 0
        for gap in GAP.finditer(text):
            self._starts.append(gap.start() - shift)
            shift += gap.end() - gap.start()
            self._shifts.append(shift)

    def of(self, at: int) -> int:
        return at + self._shifts[bisect_right(self._starts, at) - 1]


def unmasked(text: str, secrets: Sequence[str]) -> str:
    """A text in which no key shows its first or last letters around stars or dots, as endpoints like to echo it."""
    parts, start = [], 0
    for mask in islice(MASK.finditer(text), MOST_MASKS):
        before, after = text[max(start, mask.start() - BESIDE) : mask.start()], text[mask.end() : mask.end() + BESIDE]
        for secret in secrets:
            head, tail = shown_before(before, secret), shown_behind(after, secret)
            if head + tail >= TELLING:
                parts += [text[start : mask.start() - head], "[key]"]
                start = mask.end() + tail
                break
    return "".join(parts) + text[start:] if parts else text


def shown_before(text: str, secret: str) -> int:
    """How many characters at the end of a text are the beginning of a secret."""
    longest = min(len(text), len(secret))
    while longest and (longest := secret.rfind(text[-1], 0, longest) + 1):
        if text.endswith(secret[:longest]):
            return longest
        longest -= 1
    return 0


def shown_behind(text: str, secret: str) -> int:
    """How many characters at the beginning of a text are the end of a secret."""
    longest = min(len(text), len(secret))
    while longest and (longest := text.rfind(secret[-1], 0, longest) + 1):
        if secret.endswith(text[:longest]):
            return longest
        longest -= 1
    return 0
