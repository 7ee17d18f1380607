"""What a provider says of itself in attributes of its class. Whoever lists, prices or asks
providers reads them here."""

from __future__ import annotations

from typing import Any, NamedTuple

from parley.providers._env_file import find_setting


class Traits(NamedTuple):
    """Facts that a provider's class may state; each has a value where it does not."""

    home: str | None = None  # the address where nothing else is said
    home_env: str | None = None  # the variable that may hold another
    key_env: str | None = None  # the variable that holds the key
    key_env_first: tuple[str, ...] = ()  # variables that come before it where they are set
    key_needed: bool = False
    seller: str | None = None  # whose prices hold, by the name that public lists give them
    unbilled: bool = False  # it runs in this process, and nobody sends a bill
    small: str | None = None  # something small to ask for one token
    # whether a prompt that was sent before costs less; None: nobody knows
    caches: bool | None = None
    # the options that ask a model to think; None: nobody knows
    thinks_by: tuple[str, ...] | None = None
    # what can hold a reply to a form; empty: nothing; None: whatever `structured` asks for
    forms: tuple[str, ...] | None = None
    key_known: bool = True  # whether it is known here which key is wanted
    system_role: bool = True
    # a seed that the user sets is mixed with the place of each call, so that calls differ
    seed_per_call: bool = False

    @property
    def key_variable(self) -> str | None:
        """The variable that the key is taken from here and now."""
        return next((name for name in self.key_env_first if find_setting(name)), self.key_env)


def traits_of(provider: Any) -> Traits:
    """What a class of anybody's says of itself."""
    return Traits._make(
        getattr(provider, name, default) for name, default in Traits._field_defaults.items()
    )
