"""The environment variables that the models of a run read. Workers on other machines need them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from parley.config.trust import texts_in
from parley.providers import _registry as providers
from parley.providers._env_file import find_setting
from parley.providers._secrets import REFERENCE


def read_model_variables(models: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Keys, addresses, and what `${NAME}` in an option stands for; only those that are set."""
    found: dict[str, str] = {}
    for options in models.values():
        names = [each for _, text in texts_in(options) for each in REFERENCE.findall(text)]
        if options.get("api_key_env"):
            names.append(str(options["api_key_env"]))
        family = str(options["model"]).partition("/")[0]
        if providers.is_provider(family):
            traits = providers.provider_traits(family)
            names += filter(None, (*traits.key_env_first, traits.key_env))
            # workers read `.env` themselves: an address there is trusted less than one here
            if traits.home_env and traits.home_env in os.environ:
                found[traits.home_env] = os.environ[traits.home_env]
        found |= {name: value for name in names if (value := find_setting(name))}
    return found
