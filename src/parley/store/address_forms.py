"""The addresses of stores and runs, as people type them."""

from __future__ import annotations

import os
import re

from parley.errors import UsageError

FOLDER = "folder:"  # optional prefix of a folder store
# a text that looks like an address of a database: another scheme, a scheme with a typo, parameters
# like `host=…`, or a login like `me:password@`
MISSPELLED = re.compile(
    r".*://|\s*postgres(ql)?\s*([:;]|//)|[^/.][^/]*:.*@"
    r"|(.*\s)?(host|hostaddr|port|dbname|user|password|passfile|service|ssl\w+)\s*=",
    re.IGNORECASE | re.DOTALL,
)
STORE_FORMS = "a store must be a folder or postgresql://USER@HOST/DATABASE"
RUN_FORMS = "a run must be an id, a name, a file or postgresql://USER@HOST/DATABASE#ID"
LONGEST_NAME = 4000  # bytes


def is_address(text: str) -> bool:
    """Whether a text is the address of a PostgreSQL store."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme.lower() in ("postgresql", "postgres")


def passwords_in(text: str) -> list[str]:
    """The secrets in the addresses of databases in a text; `UsageError` if one of the addresses
    cannot be read."""
    from parley.store.postgres.addresses import secrets_in  # late: few need it

    return list(secrets_in(text))


def refuse_misspelled(text: str, wanted: str = STORE_FORMS) -> None:
    """Refuse a text that was probably meant as an address. It may contain a password, so the error
    does not repeat it."""
    if MISSPELLED.match(text):
        raise UsageError(
            f"{wanted}: correct the address (for a path with such a name, write ./ before it)"
        )


def refuse_long_name(text: str) -> None:
    """Refuse a text that cannot name a run."""
    if len(os.fsencode(text)) > LONGEST_NAME:
        refuse_misspelled(text, RUN_FORMS)
        raise UsageError(f"{text[:40]}… is too long for the name of a run")
