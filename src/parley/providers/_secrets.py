"""Keys: read from the environment or `.env`, and masked in everything that is stored or shown."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from html import unescape
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from parley.errors import UsageError
from parley.providers._env_file import find_setting, read_env_file
from parley.rules.readers import LONGEST

SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
# characters of a secret; what is shorter is a placeholder, and an ordinary word in a reply
SHORTEST = 8
SHORT, MOST_REMEMBERED = 64, 4096  # characters of texts that are remembered masked; how many
REFERENCE = re.compile(r"\$\{(\w+)\}")
# how JSON may write a letter or a slash
ESCAPED = re.compile(r"\\{1,4}(?:(?:u00|x)([2-7][0-9a-f])|/)", re.IGNORECASE)
QUOTED = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
USED: set[str] = set()  # every secret that was looked up here, whatever its variable is called


def read_key(variable: str | None, needed: bool) -> str | None:
    """Read the key in a variable."""
    key = find_setting(variable) if variable else None
    if key is None and needed:
        raise UsageError(f"no API key found: set {variable} in the environment or in .env")
    if key is not None:
        keep_secret(key)
    return key


def keep_secret(value: str) -> None:
    """Mask this value from now on in every reply and error."""
    if len(value := value.strip()) >= SHORTEST:
        USED.update(encodings_of(value))


def expand_references(text: str, private: bool = False) -> str:
    """Replace every `${NAME}` in a text. Private values are masked from now on; the store keeps the
    reference."""

    def value(found: re.Match[str]) -> str:
        if (known := find_setting(found[1])) is None:
            raise UsageError(
                f"{found[0]}: the variable {found[1]} is not set in the environment or in .env"
            )
        if private and not re.search(r"\s|^[/.~]|://", known):  # words and paths are none
            keep_secret(known)
        return known

    return REFERENCE.sub(value, text)


def secrets_in_environment() -> list[str]:
    """Every value in the environment that looks like a secret, the longest first."""
    named = {**read_env_file(Path.cwd()), **os.environ}
    return sorted(
        {v for n, v in named.items() if SECRET.search(n) and len(v) >= SHORTEST},
        key=len,
        reverse=True,
    )


def redact(text: str) -> str:
    """Mask all secrets in a text, also encoded or shortened ones."""
    return mask_secrets(text, secrets_in_environment())


def mask_secrets(text: str, named: Sequence[str] = ()) -> str:
    """Mask the secrets in use and these in a text."""
    used = secrets_in_use(len(USED))
    if any(mark in text for mark in HIDDEN):
        text = mask_partly_shown(text, [*used.values, *named])
    forms = [text]
    # what is encoded may be encoded again
    while len(forms) < 3 and (plain := decode_escapes(forms[-1])) != forms[-1]:
        forms.append(plain)
    if len(forms) > 1:  # the first of equals: without a secret in it a text stays as it is
        text = max(
            forms,
            key=lambda form: (
                used.shown(form) + sum(form.count(secret) * len(secret) for secret in named)
            ),
        )
    text = used.without(text)
    for secret in named:
        text = text.replace(secret, "[key]")
    return text


@lru_cache(1)
def secrets_in_use(count: int) -> Secrets:
    """The secrets in use. They only become more, so their count is the key of the cache."""
    return Secrets(USED)


def decode_escapes(text: str) -> str:
    """Undo the escapes of JSON, addresses and HTML in a text."""
    if "\\" in text:
        text = ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", text)
    if QUOTED.search(text):
        text = unquote(text)
    return unescape(text) if "&" in text else text


def mask_in_json(answer: Any) -> Any:
    """Mask the secrets in use in parsed JSON and shorten endless texts, in place."""
    if not USED:
        return answer
    used, whole = secrets_in_use(len(USED)), [answer]
    waiting: list[Any] = [whole]
    while waiting:
        holder = waiting.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(value, str):
                holder[key] = mask_in_answer(value, used)
            elif isinstance(value, dict | list):
                waiting.append(value)
            if isinstance(key, str) and (name := mask_in_answer(key, used)) != key:
                holder[name] = holder.pop(key)
    return whole[0]


def mask_in_answer(text: str, used: Secrets) -> str:
    """Mask the secrets in use in a text of an answer, and shorten an endless one. Short texts, such
    as the names of fields, are the same in many answers: what becomes of them is remembered."""
    if len(text) > SHORT:
        return mask_secrets(text[: 2 * LONGEST])
    if (masked := used.remembered.get(text)) is None:
        if len(used.remembered) >= MOST_REMEMBERED:
            used.remembered.clear()
        masked = used.remembered[text] = mask_secrets(text)
    return masked


def complete_address(url: str, what: str, path: str = "") -> str:
    """An http address with a path appended, complete and without a password or key written out in
    it."""
    for name, value in parse_qsl(url.partition("?")[2]):
        if SECRET.search(name) and not REFERENCE.fullmatch(value):
            raise UsageError(
                f"{what} contains an API key: put the key into an environment variable NAME and "
                f"write {name}=${{NAME}} instead"
            )
    full = expand_references(url)
    if "@" in full.partition("?")[0].partition("//")[2].partition("/")[0]:
        raise UsageError(
            f"{what} contains a user name or password: remove it and put the API key into the "
            "environment instead"
        )
    try:
        parts = urlsplit(full)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or re.search(r"\s", full):
        raise UsageError(
            f"{what} must be an address like http://localhost:8000/v1, not {redact(url)!r}"
        )
    for found in REFERENCE.finditer(url):
        value = find_setting(found[1]) or ""
        # a value that begins within the host, as in http://${GATEWAY}: the host is no secret
        if re.fullmatch(r"\w+://[^/?]*", expand_references(url[: found.start()])):
            value = f"http://{value}"
        for piece in possible_secrets_in(value):
            if piece not in parts.netloc:
                keep_secret(piece)
    return parts._replace(path=parts.path.rstrip("/") + path, fragment="").geturl()


def possible_secrets_in(value: str) -> Iterator[str]:
    """Everything in an address, or in a part of one, that may be a secret: the whole, and each
    segment and value."""
    place, _, query = (
        value.partition("://")[2].partition("?") if "://" in value else value.partition("?")
    )
    for whole in (place.partition("/")[2] if "://" in value else place, query):
        yield whole
        yield unquote(whole)
    for piece in re.split(r"[/?&]", f"{place}?{query}"):
        yield piece
        yield unquote(piece)
        yield piece.partition("=")[2]
        yield unquote(piece.partition("=")[2])


def printable_address(url: str, path: str = "") -> str:
    """An address as errors name it: as the user wrote it, without its query."""
    return redact(url.partition("?")[0].rstrip("/") + path)


def address_without_secrets(url: str | None) -> str | None:
    """An address as it may be printed: without user, password and query, and with no key in its
    path."""
    if not url:
        return None
    head, mark, rest = url.partition("://")
    place, slash, path = (rest if mark else url).partition("?")[0].partition("/")
    return redact(f"{head + mark if mark else ''}{place.rpartition('@')[2]}{slash}{path}")


CUT = 12  # characters of a secret that are one themselves, wherever in it they stand
# of which every CUT characters hold one that begins at a multiple of it: so few places of a text
# are looked at
BLOCK = 6


# What may stand within a secret and not be seen, or only break its line: spaces, signs without
# width, tags.
UNSEEN = "\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff"
TAG = r"\\[nrt]|</?(?:wbr|br|b|i|em|u|code|span|mark)\s*/?>"
GAP = re.compile(rf"(?:[\s{UNSEEN}]|{TAG})+")
NO_WIDTH = dict.fromkeys(sign for sign in range(0xAD, 0xFF00) if re.match(f"[{UNSEEN}]", chr(sign)))
# where a part was left out
HIDDEN = ("***", "...", "…", "•", "\\u202", " end", "xxxx", "XXXX", "###", "redacted", "REDACTED")


MASK = re.compile(
    r"\*{3,}|\.{3,}|…|\\u2026|•{3,}|(?:\\u2022){3,}|x{4,}|X{4,}|#{3,}|[\[<(]\W?redacted\W?[\])>]"
    r"|\bend(?:ing|s) (?:in|with):? ['\"`]?",
    re.IGNORECASE,
)


BESIDE = 200  # characters on either side of a mask that are looked at
TELLING = 4  # characters of a key that are too many to show
MOST_MASKS = 1000  # of one text that are looked at


def encodings_of(value: str) -> Iterator[str]:
    """A value as it is, in hexadecimal, and the part that all base64 encodings of texts with the
    value share."""
    yield value
    coded = value.encode()
    yield from (coded.hex(), coded.hex().upper())
    for ahead in range(3):
        whole = b64encode(b" " * ahead + coded).rstrip(b"=").decode()
        inside = whole[-(-ahead * 8 // 6) : len(whole) - bool((ahead + len(coded)) % 3)]
        if len(inside) > CUT:
            yield from {inside, inside.translate(str.maketrans("+/", "-_"))}


class Secrets:
    """Some secrets, prepared for searches in many texts."""

    def __init__(self, values: Collection[str]) -> None:
        self.values = sorted(values, key=len, reverse=True)
        self.remembered: dict[str, str] = {}  # short texts of answers, as they are masked
        self._short = [value for value in self.values if len(value) < CUT]
        long = [remove_gaps(value) for value in self.values if len(value) >= CUT]
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
            places = places or GapPositions(text)
            parts += [text[last : places.of(start)], "[key]"]
            last = places.of(end - 1) + 1
        text = "".join(parts) + text[last:] if parts else text
        for value in self._short:
            text = text.replace(value, "[key]")
        return text

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Where parts of secrets stand in a text, counted without its gaps."""
        blocks, runs, end, text = self._blocks, self._runs, 0, remove_gaps(text)
        if blocks.isdisjoint([text[at : at + BLOCK] for at in range(0, len(text), BLOCK)]):
            return  # most texts have none, and this check is fast
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


def remove_gaps(text: str) -> str:
    """Remove invisible characters, spaces and tags that may stand within a secret."""
    if "\\" in text or "<" in text:
        return GAP.sub("", text)
    text = "".join(text.split())
    return text if text.isascii() else text.translate(NO_WIDTH)


class GapPositions:
    """Where the characters of a text without its gaps stand in it."""

    def __init__(self, text: str) -> None:
        self._starts, self._shifts, shift = [0], [0], 0
        for gap in GAP.finditer(text):
            self._starts.append(gap.start() - shift)
            shift += gap.end() - gap.start()
            self._shifts.append(shift)

    def of(self, at: int) -> int:
        return at + self._shifts[bisect_right(self._starts, at) - 1]


def mask_partly_shown(text: str, secrets: Sequence[str]) -> str:
    """Mask keys whose first or last letters are shown around stars or dots, as endpoints often echo
    them."""
    parts, start = [], 0
    for mask in islice(MASK.finditer(text), MOST_MASKS):
        before, after = (
            text[max(start, mask.start() - BESIDE) : mask.start()],
            text[mask.end() : mask.end() + BESIDE],
        )
        for secret in secrets:
            head, tail = count_shown_before(before, secret), count_shown_after(after, secret)
            if head + tail >= TELLING:
                parts += [text[start : mask.start() - head], "[key]"]
                start = mask.end() + tail
                break
    return "".join(parts) + text[start:] if parts else text


def count_shown_before(text: str, secret: str) -> int:
    """How many characters at the end of a text are the beginning of a secret."""
    longest = min(len(text), len(secret))
    while longest and (longest := secret.rfind(text[-1], 0, longest) + 1):
        if text.endswith(secret[:longest]):
            return longest
        longest -= 1
    return 0


def count_shown_after(text: str, secret: str) -> int:
    """How many characters at the beginning of a text are the end of a secret."""
    longest = min(len(text), len(secret))
    while longest and (longest := text.rfind(secret[-1], 0, longest) + 1):
        if secret.endswith(text[:longest]):
            return longest
        longest -= 1
    return 0
