"""Keys come from the environment or `.env`, and go nowhere but into a request."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from parley.errors import UsageError

SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
SHORTEST = 8  # characters of a secret; what is shorter is a placeholder, and an ordinary word in a reply
REFERENCE = re.compile(r"\$\{(\w+)\}")
LINE = re.compile(r"""\s*(?:export\s+)?(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*(?:(?<=\s)\#.*)?$""")


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
    return key


def expanded(text: str) -> str:
    """A text with every `${NAME}` replaced; what is stored keeps the reference."""

    def value(found: re.Match[str]) -> str:
        if (known := setting(found[1])) is None:
            raise UsageError(f"{found[0]} wants {found[1]} from the environment or .env, and it is not set")
        return known

    return REFERENCE.sub(value, text)


def secrets() -> list[str]:
    """Every value that looks like a secret, the longest first."""
    named = {**dotenv(Path.cwd()), **os.environ}
    return sorted({v for n, v in named.items() if SECRET.search(n) and len(v) >= SHORTEST}, key=len, reverse=True)


def redacted(text: str) -> str:
    """A text without any secret in it."""
    for secret in secrets():
        text = text.replace(secret, "[key]")
    return text


def address(url: str, what: str) -> str:
    """An http address, complete and without a password in it."""
    try:
        full = expanded(url)
        parts = urlsplit(full)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if "@" in full.partition("?")[0].partition("//")[2].partition("/")[0]:
        raise UsageError(f"{what} holds a user or password in its address: put the key into the environment instead")
    if not known or re.search(r"\s", full):
        raise UsageError(f"{what} wants an address like http://localhost:8000/v1, got {redacted(url)!r}")
    return full.rstrip("/")
