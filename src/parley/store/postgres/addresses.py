"""The address of a PostgreSQL store. Its public form has no secrets: they stay in this process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from parley.errors import UsageError
from parley.store.address_forms import is_address

SECRET = (  # parameters of libpq
    "password",
    "sslpassword",
    "oauth_client_secret",
    "scram_client_key",
    "scram_server_key",
)
SCHEME = re.compile("postgres(ql)?://", re.IGNORECASE)
INNER_PASSWORD = re.compile(r"password\s*=|://", re.IGNORECASE)
FORM = "postgresql://USER@HOST/DATABASE"
HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")
# secrets of addresses that were given to this process, by public address
_SECRETS: dict[str, dict[str, str]] = {}


class StoreAddress(NamedTuple):
    """Where a database is, and a run in it."""

    public: str  # without secrets: it may be stored, shown and typed again
    run: str = ""  # the part after `#`: the id of a run

    @property
    def secrets(self) -> dict[str, str]:
        """The secrets of this address, as parameters of libpq: as they were given to this process
        with the address, else as PARLEY_STORE has them."""
        variable = os.environ.get("PARLEY_STORE", "")
        if self.public not in _SECRETS and is_address(variable):
            with suppress(UsageError):
                parse_address(variable)
        return _SECRETS.get(self.public, {})

    @property
    def variables(self) -> dict[str, str]:
        """What the environment of another process needs to know the secrets of this address."""
        if not self.secrets:
            return {}
        secrets = urlencode(self.secrets, quote_via=quote)
        return {"PARLEY_STORE": f"{self.public}{'&' if '?' in self.public else '?'}{secrets}"}

    def location_of(self, id: str) -> str:
        """The text that names a run of this store."""
        return f"{self.public}#{id}"

    def hide_secrets(self, text: str) -> str:
        for secret in filter(None, self.secrets.values()):
            text = text.replace(secret, "***")
        return text


def secrets_in(text: str) -> Iterator[str]:
    """The secrets in all addresses in a text, for example in an option."""
    for found in SCHEME.finditer(text):
        yield from split_address(text[found.start() :])[1].values()


def parse_address(text: str) -> StoreAddress:
    """Read an address, and remember its secrets."""
    address, secrets = split_address(text)
    if secrets:
        _SECRETS[address.public] = secrets
    return address


def split_address(text: str) -> tuple[StoreAddress, dict[str, str]]:
    """An address and its secrets. Errors never repeat it, because it may contain a password."""
    unreadable = UsageError(
        f"the address of the store cannot be read: expected {FORM}; put a password into a password "
        "file (PGPASSFILE), or write its special characters in PARLEY_STORE as %XX, for example # "
        "as %23"
    )
    try:
        parts = urlsplit(text)
    except ValueError:  # such as an IPv6 address without its closing bracket
        raise unreadable from None
    login, has_login, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    # an unescaped character in a password ends the part of the address that it stands in
    is_cut = "@" in parts.path or "@" in parts.fragment
    if is_cut or not all(HOST.fullmatch(host) for host in hosts.split(",")):
        raise unreadable
    if ":" in unquote(user):  # a colon that is written as %3A
        raise unreadable
    pairs = [part.partition("=") for part in parts.query.split("&") if part]
    parameters = [(unquote(name), unquote(value)) for name, _, value in pairs]
    secrets = {name: value for name, value in parameters if name in SECRET}
    if password:
        secrets["password"] = unquote(password)
    shown = [(name, value) for name, value in parameters if name not in SECRET]
    if any(INNER_PASSWORD.search(value) for _, value in shown):
        raise unreadable
    public = (
        f"postgresql://{user}{has_login if user else ''}{hosts}{parts.path}"
        f"{'?' + urlencode(shown, safe='/', quote_via=quote) if shown else ''}"
    )
    return StoreAddress(public, unquote(parts.fragment)), secrets
