"""What the two kinds of ballots share: the names of people, and the secrets of their links."""

from __future__ import annotations

import secrets
import unicodedata
from hashlib import blake2b
from typing import Literal

from parley.errors import UsageError

VoteOutcome = Literal["recorded", "same", "changed", "not needed"]


def normalise_name(name: str) -> str:
    """The name of a person without needless white space."""
    given = " ".join(unicodedata.normalize("NFKC", name).split())
    if not given or not given.isprintable() or len(given) > 80:
        raise UsageError(f"an annotator's name must have 1 to 80 characters, not {name[:100]!r}")
    return given


def make_token() -> str:
    """A new secret for a personal link."""
    return secrets.token_urlsafe(24)


def hash_token(token: str) -> bytes:
    """The digest of a secret. The secret is long and random, so no salt is needed."""
    return blake2b(token.encode(), digest_size=32).digest()
