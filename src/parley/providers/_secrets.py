"""Keys come from the environment or `.env`, and go nowhere but into a request."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from parley.errors import UsageError
from parley.providers._hiding import HIDDEN, Secrets, forms_of, unmasked
from parley.rules.readers import LONGEST

SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
SHORTEST = 8  # characters of a secret; what is shorter is a placeholder, and an ordinary word in a reply
REFERENCE = re.compile(r"\$\{(\w+)\}")
LINE = re.compile(r"""\s*(?:export\s+)?(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*(?:(?<=\s)\#.*)?$""")
ESCAPED = re.compile(r"\\{1,4}(?:(?:u00|x)([2-7][0-9a-f])|/)", re.IGNORECASE)  # how JSON may write a letter or a slash
QUOTED = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
USED: set[str] = set()  # every secret that was looked up here, whatever its variable is called


def dotenv(folder: Path) -> dict[str, str]:
    """The assignments of a folder's `.env`."""
    try:
        lines = (folder / ".env").read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = [LINE.match(line) for line in lines if not line.lstrip().startswith("#")]
    return {match[1]: match[2] or match[3] or match[4] or "" for match in found if match}


def setting(name: str) -> str | None:
    """A value from the environment, else from `.env` here."""
    return os.environ.get(name) or dotenv(Path.cwd()).get(name) or None


def key_from(variable: str | None, needed: bool) -> str | None:
    """The key that a variable holds."""
    key = setting(variable) if variable else None
    if key is None and needed:
        raise UsageError(f"no key found: set {variable} in the environment or in .env")
    if key is not None:
        keep_secret(key)
    return key


def keep_secret(value: str) -> None:
    """From now on this value stands in no reply and no error."""
    if len(value := value.strip()) >= SHORTEST:
        USED.update(forms_of(value))


def expanded(text: str, private: bool = False) -> str:
    """A text with every `${NAME}` replaced; what is stored keeps the reference. Private values are kept secret."""

    def value(found: re.Match[str]) -> str:
        if (known := setting(found[1])) is None:
            raise UsageError(f"{found[0]} wants {found[1]} from the environment or .env, and it is not set")
        if private and not re.search(r"\s|^[/.~]|://", known):  # words and paths are none
            keep_secret(known)
        return known

    return REFERENCE.sub(value, text)


def secrets() -> list[str]:
    """Every value in the environment that looks like a secret, the longest first."""
    named = {**dotenv(Path.cwd()), **os.environ}
    return sorted({v for n, v in named.items() if SECRET.search(n) and len(v) >= SHORTEST}, key=len, reverse=True)


def redacted(text: str) -> str:
    """A text without any secret in it, also where one is encoded or cut short."""
    return covered(text, secrets())


def covered(text: str, named: Sequence[str] = ()) -> str:
    """A text without the secrets in use, and without these."""
    used = in_use(len(USED))
    if any(mark in text for mark in HIDDEN):
        text = unmasked(text, [*used.values, *named])
    forms = [text]
    while len(forms) < 3 and (plain := unencoded(forms[-1])) != forms[-1]:  # what is encoded may be encoded again
        forms.append(plain)
    if len(forms) > 1:  # the first of equals: without a secret in it a text stays as it is
        text = max(forms, key=lambda form: used.shown(form) + sum(form.count(secret) * len(secret) for secret in named))
    text = used.without(text)
    for secret in named:
        text = text.replace(secret, "[key]")
    return text


@lru_cache(1)
def in_use(count: int) -> Secrets:
    """The secrets in use. They only ever become more, and are told by their count."""
    return Secrets(USED)


def unencoded(text: str) -> str:
    """A text as it was before JSON, an address or a page wrote it in its own signs."""
    if "\\" in text:
        text = ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", text)
    if QUOTED.search(text):
        text = unquote(text)
    return unescape(text) if "&" in text else text


def scrubbed(answer: Any) -> Any:
    """Parsed JSON without the secrets in use and without endless texts, however deep it is; changed in its place."""
    if not USED:
        return answer
    whole = [answer]
    waiting: list[Any] = [whole]
    while waiting:
        holder = waiting.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(value, str):
                holder[key] = covered(value[: 2 * LONGEST])
            elif isinstance(value, dict | list):
                waiting.append(value)
            if isinstance(key, str) and (name := covered(key)) != key:
                holder[name] = holder.pop(key)
    return whole[0]


def address(url: str, what: str, path: str = "") -> str:
    """An http address with a path appended, complete and without a password or key written out in it."""
    for name, value in parse_qsl(url.partition("?")[2]):
        if SECRET.search(name) and not REFERENCE.fullmatch(value):
            raise UsageError(f"{what} holds a key in its address: put it into the environment and write {name}=${{NAME}} instead")
    full = expanded(url)
    if "@" in full.partition("?")[0].partition("//")[2].partition("/")[0]:
        raise UsageError(f"{what} holds a user or password in its address: put the key into the environment instead")
    try:
        parts = urlsplit(full)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or re.search(r"\s", full):
        raise UsageError(f"{what} wants an address like http://localhost:8000/v1, got {redacted(url)!r}")
    for found in REFERENCE.finditer(url):
        for piece in pieces(setting(found[1]) or ""):
            if piece not in parts.netloc:
                keep_secret(piece)
    return parts._replace(path=parts.path.rstrip("/") + path, fragment="").geturl()


def pieces(value: str) -> Iterator[str]:
    """All of an address, or of a part of one, that may be a secret: as a whole, and each segment and value for itself."""
    place, _, query = value.partition("://")[2].partition("?") if "://" in value else value.partition("?")
    for whole in (place.partition("/")[2] if "://" in value else place, query):
        yield whole
        yield unquote(whole)
    for piece in re.split(r"[/?&]", f"{place}?{query}"):
        yield piece
        yield unquote(piece)
        yield piece.partition("=")[2]
        yield unquote(piece.partition("=")[2])


def place_of(url: str, path: str = "") -> str:
    """How errors name an address: as it was written, without its query."""
    return redacted(url.partition("?")[0].rstrip("/") + path)


def shown_address(url: str | None) -> str | None:
    """An address as it may be printed: without user, password and query, and with no key in its path."""
    if not url:
        return None
    head, mark, rest = url.partition("://")
    place, slash, path = (rest if mark else url).partition("?")[0].partition("/")
    return redacted(f"{head + mark if mark else ''}{place.rpartition('@')[2]}{slash}{path}")
