"""What files from somebody else may do with folders, hosts and environment variables.

You trust what you type (flags, Python, PARLEY_MODELS) and your own `~/.config/parley/models.yaml`.
Experiment files, task files, run files, and `models.yaml` and `.env` in the current folder may come
from somebody else. Such a file cannot send a key to a host that is not its provider's, read a
variable of your environment, or read files outside its folder, unless you allow it by name.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import invalidate_caches
from importlib.machinery import PathFinder
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from typing import Any, Self
from urllib.parse import urlsplit

from parley.config.yaml_file import Place, YamlFile
from parley.errors import UsageError
from parley.providers import _registry as providers
from parley.providers._env_file import find_setting
from parley.providers._secrets import REFERENCE, expand_references
from parley.providers._traits import Traits
from parley.store import name_store
from parley.store.address_forms import is_address

# Hosts of a provider's own besides its home, by how their names end.
MORE_HOSTS = {
    "azure": (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
    "google": ("-aiplatform.googleapis.com",),
}


ALL_KEYS = "your keys"  # if it is not known which key would be sent


@dataclass(frozen=True)
class Allowed:
    """What the user allows files to do: `--allow-host`, `--allow-path`, `--allow-env`."""

    hosts: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    variables: frozenset[str] = frozenset()
    keys_at: frozenset[tuple[str, str]] = frozenset()  # (host, variable) in the user's own files

    @classmethod
    def of(
        cls, hosts: Iterable[str] = (), paths: Iterable[str] = (), variables: Iterable[str] = ()
    ) -> Allowed:
        """Make it from what the user typed; a host may be a URL."""
        names = (host_of(each) if "://" in each else each.partition(":")[0] for each in hosts)
        return cls(frozenset(name.lower() for name in names), tuple(paths), frozenset(variables))

    def with_keys_at(self, keys_at: Iterable[tuple[str, str]]) -> Allowed:
        """The same, and these keys at these hosts."""
        return replace(self, keys_at=self.keys_at.union(keys_at))

    def with_paths(self, paths: Iterable[str]) -> Allowed:
        """The same, and these paths."""
        return replace(self, paths=(*self.paths, *paths))

    def has_path(self, path: Path) -> bool:
        """Whether a path, or a folder above it, was allowed."""
        return any(path.is_relative_to(Path(each).expanduser().resolve()) for each in self.paths)


NOTHING_MORE = Allowed()


class Located(str):
    """A string from a file that knows its place in the file."""

    file: YamlFile
    place: Place

    @classmethod
    def at(cls, text: str, file: YamlFile, place: Place) -> Self:
        made = cls(text)
        made.file, made.place = file, place
        return made


class Written(Located):
    """A string from a file that may be somebody else's; it is checked before use."""


def mark_written(value: Any, file: YamlFile, place: Place, kind: type[Located] = Written) -> Any:
    """Mark all strings in a value of a file with their place."""
    if isinstance(value, dict):
        return {k: mark_written(each, file, (*place, k), kind) for k, each in value.items()}
    if isinstance(value, list):
        return [mark_written(each, file, (*place, n), kind) for n, each in enumerate(value)]
    return kind.at(value, file, place) if isinstance(value, str) else value


def locate_model_fault(wrong: UsageError, options: Mapping[str, Any]) -> UsageError:
    """Add file, line and key to an error about a model, if its options come from a file."""
    model, said = options["model"], str(wrong)
    keys = [key for key in options if key != "model" and re.search(rf"\b{re.escape(key)}\b", said)]
    if keys and isinstance(options[keys[0]], Located):
        origin: Located = options[keys[0]]
        return origin.file.error(origin.place, said)
    if not isinstance(model, Located):
        return wrong
    if not keys:
        return model.file.error(model.place, said)
    place = (*model.place[:-1], keys[0])
    return model.file.error(place, said) if model.file.has(place) else wrong


def check_references(file: YamlFile, allowed: Allowed) -> None:
    """Refuse every `${NAME}` in a file with a variable that files may not use."""
    for place, text in texts_in(file.data):
        check_reference(file, place, text, allowed)


def check_reference(file: YamlFile, place: Place, text: str, allowed: Allowed) -> None:
    """Refuse a `${NAME}` in a string. An address may contain keys and addresses of providers;
    `check_host` checks its host."""
    for found in REFERENCE.finditer(text):
        name = found[1]
        address = place[-1:] == ("base_url",) and name in provider_variables()
        if not address and name not in allowed.variables:
            raise file.error(
                place,
                f"${{{name}}} would read one of your environment variables: if you trust this "
                f"file, add --allow-env {name}",
            )


def texts_in(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Every string in plain data, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts_in(each, (*place, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from texts_in(each, (*place, number))


def check_path(file: YamlFile, place: Place, path: str | Path, allowed: Allowed) -> None:
    """Refuse a path outside a file's folder, also through a link. Every path that a file leads to
    comes here: what it names, what else belongs to its dataset, and what it names in a record."""
    folder = file.path.expanduser().resolve().parent
    try:
        places = places_of(path)
    # a name that is too long, a NUL in it, links in a circle
    except (OSError, ValueError, RuntimeError) as wrong:
        said = getattr(wrong, "strerror", None) or wrong
        raise file.error(place, f"{path} cannot be read: {said}: correct the path") from None
    for name, leads_to in places:
        if not (leads_to.is_relative_to(folder) or allowed.has_path(leads_to)):
            link = f" leads to {leads_to}, which" if name != path else ""
            raise file.error(
                place,
                f"{name}{link} is outside the folder of this file: if you trust this file, add "
                f"--allow-path {leads_to if link else path}",
            )


def places_of(path: str | Path) -> list[tuple[str | Path, Path]]:
    """A path and the links below it, each with what it leads to."""
    found = Path(path).expanduser().resolve()
    links = [each for each in found.rglob("*") if each.is_symlink()]
    return [(path, found), *((each, each.resolve()) for each in links)]


def check_parameters(file: YamlFile, allowed: Allowed) -> None:
    """Refuse parameters of a task that are paths outside a file's folder."""
    for place, text in texts_in(file.data.get("set", {}), ("set",)):
        check_if_path(file, place, text, allowed)


def check_evolve_paths(file: YamlFile, allowed: Allowed) -> None:
    """Refuse a run for `transfer`, or a retriever, outside a file's folder."""
    for place, text in texts_in(file.data.get("evolve", {}), ("evolve",)):
        if place[-1] == "transfer":
            check_if_path(file, place, text, allowed)
            check_run_name(file, place, text, allowed)
        elif place[-1] == "retriever":
            check_if_path(file, place, text.removeprefix("hf/"), allowed)


def check_run_name(file: YamlFile, place: Place, text: str, allowed: Allowed) -> None:
    """Refuse the name of a run in a store outside a file's folder, because the models in the file
    would see its replies."""
    given = file.data.get("store")
    folder = name_store(given if isinstance(given, str) else None)
    own = not is_address(folder) and Path(folder).resolve().is_relative_to(
        file.path.expanduser().resolve().parent
    )
    if not own and not Path(text).exists() and not allowed.has_path(Path(text).resolve()):
        raise file.error(
            place,
            f"{text} is a run in {folder}, outside the folder of this file: if you trust this "
            f"file, add --allow-path {text}",
        )


def check_if_path(file: YamlFile, place: Place, text: str, allowed: Allowed) -> None:
    """Refuse a string that is a path outside a file's folder, relative to that folder or to the
    current one."""
    for path in (text, str(file.path.parent / text)) if text.strip() else ():
        if names_path(text) or is_there(path):
            check_path(file, place, path, allowed)


def names_path(text: str) -> bool:
    """Whether a string can only be a path."""
    return text.startswith(("/", "~")) or ".." in Path(text).parts


def is_there(path: str) -> bool:
    """Whether there is a file or a folder at a path."""
    with suppress(OSError, ValueError):  # too long, or not a path
        return Path(path).expanduser().exists()
    return False


def check_code(file: YamlFile, place: Place, module: str, allowed: Allowed) -> None:
    """Refuse Python code that is neither in the file's folder nor in the current one: any function
    of any package would run with the user's rights on a model's text."""
    top = module.partition(".")[0]
    folders = (file.path.expanduser().resolve().parent, Path.cwd().resolve())
    if module == "__main__" or {module, top} & {*allowed.paths} or is_module_in(module, folders):
        return
    raise file.error(
        place,
        f"the Python module {module} is outside the folder of this file and would run with your "
        f"permissions: if you trust this file, add --allow-path {module}",
    )


def is_module_in(module: str, folders: Iterable[Path]) -> bool:
    """Whether a module is a file or a package in one of these folders, also behind links, and no
    other module of that name would be imported instead."""
    folders = [folder.resolve() for folder in folders]
    names = module.split(".")
    if names[0] in sys.stdlib_module_names or not all(map(str.isidentifier, names)):
        return False
    owners = set[Path]()
    for folder in folders:
        if files := module_files(names, folder):
            if not all(any(file.is_relative_to(each) for each in folders) for file in files):
                return False
            owners.add(files[0])
    loaded = sys.modules.get(names[0])
    if loaded is None or not owners:
        return bool(owners)
    found = [loaded.__file__] if getattr(loaded, "__file__", None) else list(loaded.__path__)
    return any(Path(place or "").resolve() in owners for place in found)


def module_files(names: Sequence[str], folder: Path) -> list[Path]:
    """The files that Python would import from a folder for a module, links resolved: of each
    package above it (a folder if it has no `__init__.py`), and its own. Empty if the folder does
    not have the module."""
    invalidate_caches()
    found, search = list[Path](), [str(folder)]
    for name in names:
        spec = PathFinder.find_spec(name, search)
        if spec is None:
            return []
        search = list(spec.submodule_search_locations or ())
        found.append(Path(spec.origin or search[0]).resolve())
    return found if found[-1].is_file() else []


def check_models(models: Mapping[str, Mapping[str, Any]], allowed: Allowed) -> None:
    """Refuse models that would send a key to a wrong host or run code from elsewhere."""
    for options in models.values():
        check_model(options, allowed)


def check_model(options: Mapping[str, Any], allowed: Allowed) -> None:
    """Refuse a model of a file that would send a key to another host than its provider's, or run
    code from elsewhere."""
    model = options["model"]
    family, _, name = model.partition("/")
    for _, text in texts_in(dict(options)):
        if isinstance(text, Written):
            check_reference(text.file, text.place, text, allowed)
    if isinstance(model, Written):
        check_written_model(model, family, name, allowed)
    variable = options.get("api_key_env")
    if isinstance(variable, Written) and variable not in provider_variables() | allowed.variables:
        raise variable.file.error(
            variable.place,
            f"the environment variable {variable} would be sent as an API key, but no provider "
            f"that Parley knows uses it: if you trust this file, add --allow-env {variable}",
        )
    if providers.is_provider(family):
        traits = providers.provider_traits(family)
        if isinstance(model, Written) and traits.may_name_folder(options):
            check_checkpoint(model, name, allowed)
        check_server_words(options)
        check_model_address(options, traits, allowed)
    elif family == "http" and isinstance(model, Written) and variable:
        check_host(model, name, str(variable), "", allowed)


def check_written_model(model: Written, family: str, name: str, allowed: Allowed) -> None:
    """Check the path or the code that a file names as a model."""
    if family == "python":
        check_code(model.file, model.place, name.partition(":")[0], allowed)
    elif family == "scripted":
        check_path(model.file, model.place, name, allowed)


def check_checkpoint(model: Written, name: str, allowed: Allowed) -> None:
    """Refuse a checkpoint of a file that is a folder outside the file's. A run's record was checked
    before."""
    if not isinstance(model.file, OtherFile):
        check_if_path(model.file, model.place, name, allowed)


def check_server_words(options: Mapping[str, Any]) -> None:
    """Refuse words of a file for the command line of a server, which runs with the user's rights
    and may run code from anywhere."""
    for _, words in texts_in(options.get("server_args")):
        if isinstance(words, Written) and words:
            raise words.file.error(
                words.place,
                f"these words would start a program with your permissions: {words!r}. If you "
                f"trust them, type them: -M {quote(f'ALIAS.server_args={words}')}",
            )


def check_model_address(options: Mapping[str, Any], traits: Traits, allowed: Allowed) -> None:
    """Refuse to send a key to an address from a file that is not the provider's, and to send a key
    that a file chose to somebody else's address."""
    base, named = options.get("base_url"), options.get("api_key_env")
    family = str(options["model"]).partition("/")[0]
    key = named or traits.key_variable
    keys = [str(key)] if key and find_setting(str(key)) else []
    typed = os.environ.get(traits.home_env) if traits.home_env else None
    found = find_setting(traits.home_env) if traits.home_env else None
    if isinstance(base, Written):
        if not traits.key_known:  # it finds keys in the environment by its own rules
            keys.append(ALL_KEYS)
        keys += [found[1] for found in REFERENCE.finditer(base)]
        for each in keys:
            check_host(base, base, each, family, allowed)
    elif keys and base is None and found and not typed:  # from .env in this folder
        origin = Written.at(found, env_file(), (traits.home_env or "",))
        check_host(origin, found, keys[0], family, allowed)
    elif keys and isinstance(named, Written) and (address := base or typed or traits.home):
        check_host(named, address, keys[0], family, allowed)


def check_host(origin: Written, address: str, variable: str, family: str, allowed: Allowed) -> None:
    """Refuse to send the value of a variable to an address from a file, unless it is this machine,
    a host of the key's provider, or allowed. A server on this machine gets no other provider's
    key."""
    full = expand_references(address)
    host = host_of(full)
    if host in allowed.hosts or (host, variable) in allowed.keys_at:
        return
    owners = {name for name, each in all_traits().items() if variable in key_variables(each)}
    if is_loopback(host) and (not owners or family in owners):
        return
    sent = variable if variable == ALL_KEYS else f"the value of {variable}"
    if not host:
        raise origin.file.error(
            origin.place,
            f"{sent} would be sent to an address without a readable host name: correct the address",
        )
    advice = f"if you trust this host, add --allow-host {host}"
    if any(is_own_host(host, owner) for owner in owners or {family}):
        if full.lower().startswith("https:"):
            return
        raise origin.file.error(
            origin.place,
            f"{sent} would be sent to {host} unencrypted: write https://, or {advice}",
        )
    raise origin.file.error(
        origin.place,
        f"{sent} would be sent to {host}, which does not belong to "
        f"{' or '.join(sorted(owners)) or 'the owner of the key'}: {advice}",
    )


def mark_recorded(models: Mapping[str, Mapping[str, Any]], run: str) -> dict[str, dict[str, Any]]:
    """Mark the models of a run's file, which may come from somebody else."""
    file = OtherFile(run)
    return {
        alias: mark_written(dict(options), file, ("models", alias))
        for alias, options in models.items()
    }


class OtherFile(YamlFile):
    """A file that is not YAML, for errors that name places in it."""

    def __init__(self, name: str) -> None:
        self.name, self.path, self.data = name, Path(name), {}

    def place_text(self, place: Place) -> str:
        return f"{self.name}: {'.'.join(map(str, place))}"


def env_file() -> YamlFile:
    return OtherFile(".env")


def host_of(address: str) -> str:
    """The host of an address; empty if there is none."""
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":  # but not names below it, which DNS may resolve to other hosts
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_host(host: str, family: str) -> bool:
    """Whether a host belongs to a provider."""
    traits = all_traits().get(family)
    home = host_of(traits.home) if traits and traits.home else ""
    return bool(host) and (host == home or host.endswith(MORE_HOSTS.get(family, ("\0",))))


@cache
def all_traits() -> dict[str, Traits]:
    """The traits of every provider that can be loaded."""
    found = {}
    for name in providers.provider_names():
        try:
            found[name] = providers.provider_traits(name)
        except UsageError:  # a plug-in that cannot be loaded owns nothing
            continue
    return found


def key_variables(traits: Traits) -> tuple[str, ...]:
    return (*traits.key_env_first, *([traits.key_env] if traits.key_env else []))


@cache
def provider_variables() -> frozenset[str]:
    """The variables that hold keys and addresses of known providers."""
    return frozenset(
        name
        for each in all_traits().values()
        for name in (*key_variables(each), *([each.home_env] if each.home_env else []))
    )
