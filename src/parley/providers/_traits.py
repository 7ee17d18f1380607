"""Facts about a provider, from attributes of its class. All code that lists, prices or calls
providers reads them here."""

from __future__ import annotations

from typing import Any, NamedTuple

from parley.providers._env_file import find_setting


class Traits(NamedTuple):
    """Facts that a provider's class may state, each with a default."""

    home: str | None = None  # the default address
    home_env: str | None = None  # the variable that may hold another one
    key_env: str | None = None  # the variable that holds the key
    key_env_first: tuple[str, ...] = ()  # variables that come before it if they are set
    key_needed: bool = False
    seller: str | None = None  # the company whose prices apply, as public price lists name it
    unbilled: bool = False  # it runs in this process and costs nothing
    small: str | None = None  # a small model for a test call of one token
    # whether a prompt that was sent before costs less; None: unknown
    caches: bool | None = None
    # the options that ask a model to think; None: unknown
    thinks_by: tuple[str, ...] | None = None
    # the formats that can constrain a reply; empty: none; None: as `structured` says
    forms: tuple[str, ...] | None = None
    key_known: bool = True  # whether Parley knows which key is needed
    system_role: bool = True
    # a seed that the user sets is mixed with the place of each call, so that calls differ
    seed_per_call: bool = False

    @property
    def key_variable(self) -> str | None:
        """The variable that the key is read from now."""
        return next((name for name in self.key_env_first if find_setting(name)), self.key_env)


def traits_of(provider: Any) -> Traits:
    """The traits of a provider's class."""
    return Traits._make(
        getattr(provider, name, default) for name, default in Traits._field_defaults.items()
    )
