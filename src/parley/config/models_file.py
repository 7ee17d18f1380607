"""Your own aliases for models: from `models.yaml` in the current folder, or the file that
PARLEY_MODELS names, and from `~/.config/parley/models.yaml` for all folders."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from parley.config.trust import Located, Written, host_of, mark_written
from parley.config.yaml_file import YamlFile, short_value
from parley.errors import UsageError, unknown_name
from parley.participants._registry import parse_model_name, participant_kinds
from parley.providers import _registry as providers
from parley.providers._secrets import REFERENCE, expand_references

Entry = dict[str, Any]  # {"model": PROVIDER/NAME, options…}


@cache
def experiment_schema() -> dict[str, Any]:
    """The published schema of experiment files; models have the same schema everywhere."""
    found: dict[str, Any] = orjson.loads(
        files("parley.config").joinpath("experiment.schema.json").read_bytes()
    )
    return found


def models_path() -> Path:
    """The file with aliases for runs in this folder."""
    return Path(os.environ.get("PARLEY_MODELS") or "models.yaml").expanduser()


def own_models_path() -> Path:
    """The file with aliases for all folders."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "parley" / "models.yaml"


def shared_models() -> dict[str, Entry]:
    """The aliases of all files. Those of the current folder take precedence."""
    found = trusted_models()
    if not os.environ.get("PARLEY_MODELS") and models_path().exists():
        found |= read_models(YamlFile(models_path()), trusted=False)
    return found


def trusted_models() -> dict[str, Entry]:
    """The aliases in files that you control: the one for all folders, and the one that
    PARLEY_MODELS names."""
    found: dict[str, Entry] = {}
    if own_models_path().is_file():
        found |= read_models(YamlFile(own_models_path()), trusted=True)
    if os.environ.get("PARLEY_MODELS"):
        found |= read_models(YamlFile(models_path()), trusted=True)
    return found


def keys_at_trusted_hosts() -> frozenset[tuple[str, str]]:
    """The hosts in files that you control, each with the variable of the key that is sent there."""
    found = set()
    for options in trusted_models().values():
        family, base = str(options["model"]).partition("/")[0], options.get("base_url")
        if isinstance(base, str) and providers.is_provider(family):
            key = options.get("api_key_env") or providers.provider_traits(family).key_variable
            variables = [*([str(key)] if key else []), *(m[1] for m in REFERENCE.finditer(base))]
            found |= {(host_of(expand_references(base)), each) for each in variables}
    return frozenset(found)


def default_options() -> Entry:
    """The options under `defaults`, for every model that takes them. Those of the current folder
    take precedence."""
    found: Entry = {}
    if own_models_path().is_file():
        found |= read_defaults(YamlFile(own_models_path()), trusted=True)
    if os.environ.get("PARLEY_MODELS"):
        found |= read_defaults(YamlFile(models_path()), trusted=True)
    elif models_path().exists():
        found |= read_defaults(YamlFile(models_path()), trusted=False)
    return found


def read_models(file: YamlFile, trusted: bool) -> dict[str, Entry]:
    """The aliases in a file, at the top level or under `models`."""
    if file.data.get("kind") in ("experiment", "task"):
        raise file.error(
            ("kind",),
            f"expected a list of models, found a file with `kind: {file.data['kind']}`: write "
            "each model as `ALIAS: {model: PROVIDER/NAME}`",
        )
    read_defaults(file, trusted)
    models = {**experiment_schema()["properties"]["models"], "type": "object"}
    inner = file.data.get("models")
    if "models" in file.data and not (isinstance(inner, dict) and "model" in inner):
        form = {
            "type": "object",
            "additionalProperties": False,
            "required": ["models"],
            "properties": {"models": models},
        }
        file.check(form)
        return models_in(file, "models", trusted=trusted)
    file.check(models)
    return models_in(file, trusted=trusted)


def read_defaults(file: YamlFile, trusted: bool) -> Entry:
    """Check the defaults in a file and remove them from its data."""
    usual = file.data.get("defaults")
    if "defaults" not in file.data or (isinstance(usual, dict) and "model" in usual):
        return {}
    defaults = file.data.pop("defaults")
    if not isinstance(defaults, dict):
        raise file.error(
            ("defaults",),
            "`defaults` needs options for all models, written as `OPTION: VALUE`; found "
            f"{short_value(defaults)}",
        )
    for name in defaults:
        if name not in known_options():
            wrong = unknown_name("option of models:", name, known_options())
            raise file.error(("defaults", name), str(wrong))
    kind = Located if trusted else Written
    found: Entry = mark_written(defaults, file, ("defaults",), kind)
    return found


@cache
def known_options() -> frozenset[str]:
    """The options of the providers in this package, without addresses and keys, which belong to one
    model."""
    kinds = [providers.builtin_class(family) for family in providers.provider_names()]
    own = {each.name for kind in kinds if is_dataclass(kind) for each in fields(kind) if each.init}
    return frozenset({*own, *providers.COMMON} - {"name", "base_url", "api_key_env"})


def with_defaults(model: Entry) -> Entry:
    """A model with the defaults that it takes and does not set itself. Bots, functions and people
    take none, so no file is read for them."""
    family = str(model["model"]).partition("/")[0]
    if not providers.is_provider(family) or not (defaults := default_options()):
        return model
    kind = providers.provider_class(family)
    takes = {*providers.COMMON, *getattr(kind, "__dataclass_fields__", {})} - {"name"}
    return {**model, **{k: v for k, v in defaults.items() if k in takes and k not in model}}


def models_in(file: YamlFile, *under: str, trusted: bool) -> dict[str, Entry]:
    """The models in a file, checked, with paths relative to the current folder. Values of a file
    that may be somebody else's are marked.

    An entry is {model: PROVIDER/NAME, options…}, or only a name. Instead of PROVIDER/NAME it may
    give an alias of `models.yaml`, whose options it inherits. A list has only aliases.
    """
    given = file.data[under[0]] if under else file.data
    if isinstance(given, list):
        given = {alias: alias for alias in given}
    found: dict[str, Entry] = {}
    for alias, said in given.items():
        options = {"model": said} if isinstance(said, str) else dict(said)
        inherited: Entry = {}
        with file.errors_at(*under, alias, *(() if isinstance(said, str) else ("model",))):
            if under and "/" not in str(options["model"]):
                inherited = model_of_alias(options.pop("model"), {}, file)
            else:
                options["model"] = parse_model_name(f"{alias}={options['model']}").model
        family, _, name = str(options.get("model", "")).partition("/")
        if family == "scripted":
            options["model"] = f"{family}/{relative_to_file(file, name)}"
        # a folder; without a dot it may be the name of a repository
        elif name.startswith(".") and providers.find_traits(family).may_name_folder(options):
            folder = relative_to_file(file, name)
            options["model"] = f"{family}/{folder if Path(folder).is_absolute() else f'./{folder}'}"
        kind = Located if trusted else Written
        own = mark_written(options, file, (*under, alias), kind)
        found[alias] = {**inherited, **own}
    return found


def relative_to_file(file: YamlFile, path: str) -> str:
    """A path in a file, which is relative to that file, relative to the current folder."""
    return path if path.startswith(("~", "${")) else str(file.path.parent / path)


def model_of_alias(
    alias: str, own: Mapping[str, Entry], file: YamlFile | None, typed: Collection[str] = ()
) -> Entry:
    """The model of an alias, from this run or from `models.yaml`. Errors do not suggest aliases
    that were only `typed`."""
    if alias in own:
        return dict(own[alias])
    shared = shared_models()
    if alias in shared:
        return dict(shared[alias])
    here = models_path()
    looked = [str(file.path)] if file else []
    looked.append(str(here) if here.exists() else f"{here} (not found)")
    if providers.is_provider(alias) or alias in participant_kinds():
        what = "a provider" if providers.is_provider(alias) else "a kind of participant"
        raise UsageError(
            f"{alias!r} is {what}, but the name of the model is missing: write {alias}/NAME"
        )
    wrong = unknown_name(
        "alias", alias, {*own, *shared} - {each for each in typed if each not in shared}
    )
    raise UsageError(
        f"{wrong}; Parley looked for aliases in {' and '.join(looked)}. To name a model without "
        "an alias, write PROVIDER/NAME, like bot/random"
    )
