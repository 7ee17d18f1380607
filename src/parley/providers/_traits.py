"""Facts about a provider, from attributes of its class. All code that lists, prices or calls
providers reads them here."""

from __future__ import annotations

from collections.abc import Mapping
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
    loads_folders: bool = False  # a model's name may be a folder with a checkpoint
    starts_server: bool = False  # Parley starts a server for a model without an address
    # a seed that the user sets is mixed with the place of each call, so that calls differ
    seed_per_call: bool = False

    def has_address(self, options: Mapping[str, Any]) -> bool:
        """Whether the user has given the address of a model with these options."""
        return bool(options.get("base_url") or (self.home_env and find_setting(self.home_env)))

    def will_start_server(self, options: Mapping[str, Any]) -> bool:
        """Whether Parley starts a server for a model with these options, unless one answers."""
        return self.starts_server and not self.has_address(options)

    def is_unbilled(self, options: Mapping[str, Any]) -> bool:
        """Whether calls of a model with these options cost nothing."""
        return self.unbilled or self.will_start_server(options)

    def may_name_folder(self, options: Mapping[str, Any]) -> bool:
        """Whether the name of a model with these options may be a folder of this machine."""
        return self.loads_folders and not self.has_address(options)

    @property
    def key_variable(self) -> str | None:
        """The variable that the key is read from now."""
        return next((name for name in self.key_env_first if find_setting(name)), self.key_env)


def traits_of(provider: Any) -> Traits:
    """The traits of a provider's class."""
    return Traits._make(
        getattr(provider, name, default) for name, default in Traits._field_defaults.items()
    )
