"""The address of a PostgreSQL store. Its public form has no secrets: they stay in this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from parley.errors import UsageError

SECRET = ("password", "sslpassword", "oauth_client_secret")  # parameters of libpq
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
        """The secrets that were given with this address, as parameters of libpq."""
        return _SECRETS.get(self.public, {})

    def location_of(self, id: str) -> str:
        """The text that names a run of this store."""
        return f"{self.public}#{id}"

    def hide_secrets(self, text: str) -> str:
        for secret in filter(None, self.secrets.values()):
            text = text.replace(secret, "***")
        return text


def find_written_secrets(text: str) -> Iterator[str]:
    """The secrets in an address, or in an option with one, as they are written there."""
    try:
        parts = urlsplit(text[max(0, text.find("postgres")) :])
    except ValueError:
        return
    if password := parts.netloc.rpartition("@")[0].partition(":")[2]:
        yield password
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if unquote(name) in SECRET and value:
            yield value


def parse_address(text: str) -> StoreAddress:
    """Read an address. Errors never repeat it, because it may contain a password."""
    unreadable = UsageError(
        f"the address of the store cannot be read: expected {FORM}; write special characters "
        "in a password as %XX, for example # as %23, or put the password into PGPASSFILE"
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
    pairs = [part.partition("=") for part in parts.query.split("&") if part]
    parameters = [(unquote(name), unquote(value)) for name, _, value in pairs]
    secrets = {name: value for name, value in parameters if name in SECRET}
    if password:
        secrets["password"] = unquote(password)
    shown = [(name, value) for name, value in parameters if name not in SECRET]
    public = (
        f"postgresql://{user}{has_login if user else ''}{hosts}{parts.path}"
        f"{'?' + urlencode(shown, safe='/', quote_via=quote) if shown else ''}"
    )
    if secrets:
        _SECRETS[public] = secrets
    return StoreAddress(public, unquote(parts.fragment))
