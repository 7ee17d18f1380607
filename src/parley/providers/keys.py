"""Keys come from the environment or `.env`, and go nowhere but into a request."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from parley.errors import UsageError

SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
REFERENCE = re.compile(r"\$\{(\w+)\}")
LINE = re.compile(r"\s*(?:export\s+)?(\w+)\s*=\s*(.*?)\s*$")


@cache
def dotenv(folder: Path) -> dict[str, str]:
    """The assignments of a folder's `.env`."""
    try:
        lines = (folder / ".env").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = [LINE.match(line) for line in lines if not line.lstrip().startswith("#")]
    return {match[1]: match[2].strip("'\"") for match in found if match}


def setting(name: str) -> str | None:
    """A value from the environment, else from `.env` here."""
    return os.environ.get(name) or dotenv(Path.cwd()).get(name) or None


def expanded(text: str) -> str:
    """A text with every `${NAME}` replaced; what is stored keeps the reference."""

    def value(found: re.Match[str]) -> str:
        if (known := setting(found[1])) is None:
            raise UsageError(f"{text!r} wants {found[1]} from the environment or .env, and it is not set")
        return known

    return REFERENCE.sub(value, text)


def secrets() -> list[str]:
    """Every value that looks like a secret, the longest first."""
    named = {**dotenv(Path.cwd()), **os.environ}
    return sorted({v for n, v in named.items() if SECRET.search(n) and len(v) >= 8}, key=len, reverse=True)


def redacted(text: str) -> str:
    """A text without any secret in it."""
    for secret in secrets():
        text = text.replace(secret, "[key]")
    return text


def address(url: str, what: str) -> str:
    """An http address, complete and without a password in it."""
    parts = urlsplit(expanded(url))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{what} wants an address like http://localhost:8000/v1, got {redacted(url)!r}")
    if parts.username or parts.password:
        raise UsageError(f"{what} holds a user or password in its address: put the key into the environment instead")
    return expanded(url).rstrip("/")
