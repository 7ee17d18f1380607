"""Keys: read from the environment or `.env`, and masked in everything that is stored or shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from parley.errors import UsageError
from parley.providers._env_file import find_setting, read_env_file
from parley.rules.readers import LONGEST

SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
# characters of a secret; what is shorter is a placeholder, and an ordinary word in a reply
SHORTEST = 8
REFERENCE = re.compile(r"\$\{(\w+)\}")
# what services print in place of the middle of a key
LEFT_OUT = re.compile(
    r"\*{3,}|\.{3,}|…|\\u2026|•{3,}|(\\u2022){3,}|x{4,}|#{3,}|[\[<(]redacted[\])>]"
    r"|\bend(ing|s) (in|with):? ['\"`]?",
    re.IGNORECASE,
)
ENDS = 4  # a key is masked if so many of its first or last characters stand beside such a mark
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
        USED.update(written_forms(value))


def written_forms(value: str) -> Iterator[str]:
    """A value as it is, and percent-quoted as in an address."""
    yield value
    for quoted in {quote(value, errors="replace"), quote(value, safe="", errors="replace")}:
        yield quoted
        yield re.sub("%..", lambda code: code[0].lower(), quoted)


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


def secrets_in_environment() -> set[str]:
    """Every value in the environment that looks like a secret."""
    named = {**read_env_file(Path.cwd()), **os.environ}
    return {v for n, v in named.items() if SECRET.search(n) and len(v) >= SHORTEST}


def known_secrets() -> list[str]:
    """Every secret in use or in the environment, as it may be written, the longest first."""
    named = {form for value in secrets_in_environment() for form in written_forms(value)}
    return sorted(USED | named, key=len, reverse=True)


def redact(text: str) -> str:
    """Mask all secrets in a text."""
    return mask_secrets(text, known_secrets())


def make_secret_filter() -> Callable[[str], str]:
    """A function that masks all secrets in a text; for many texts."""
    known = known_secrets()
    return lambda text: mask_secrets(text, known)


def mask_secrets(text: str, secrets: Sequence[str], most: int | None = None) -> str:
    """Mask these secrets in a text, the longest first, and cut an endless text."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    text = text[:most]
    shown = [each for each in secrets if each[:ENDS] in text or each[-ENDS:] in text]
    return mask_shown_ends(text, shown) if shown else text


def mask_shown_ends(text: str, secrets: Sequence[str]) -> str:
    """Mask keys whose first or last characters are shown around stars or dots, as services do in
    their errors."""
    sizes = range(max(map(len, secrets)), ENDS - 1, -1)
    heads = [secret[:size] for size in sizes for secret in secrets]
    tails = [secret[-size:] for size in sizes for secret in secrets]
    parts, start = [], 0
    for gap in LEFT_OUT.finditer(text):
        before, after = gap.span()
        head = next((head for head in heads if text.endswith(head, start, before)), "")
        tail = next((tail for tail in tails if text.startswith(tail, after)), "")
        if head or tail:
            parts += [text[start : before - len(head)], "[key]"]
            start = after + len(tail)
    return "".join(parts) + text[start:]


def mask_in_json(answer: Any) -> Any:
    """Mask the secrets in use in parsed JSON and shorten endless texts, in place."""
    if not USED:
        return answer
    used = sorted(USED, key=len, reverse=True)
    whole = [answer]
    waiting: list[Any] = [whole]
    while waiting:
        holder = waiting.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(value, str):
                holder[key] = mask_secrets(value, used, 2 * LONGEST)
            elif isinstance(value, dict | list):
                waiting.append(value)
            if isinstance(key, str) and (name := mask_secrets(key, used, 2 * LONGEST)) != key:
                holder[name] = holder.pop(key)
    return whole[0]


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
    place, _, query = value.split("://", 1)[-1].partition("?")
    pieces = re.split(r"[/?&]", f"{place}?{query}")
    path = place.partition("/")[2] if "://" in value else place
    for piece in (path, query, *pieces, *(piece.partition("=")[2] for piece in pieces)):
        yield piece
        yield unquote(piece)


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
