"""`parley models`: list participants and prices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import click
import orjson

from parley.cli.progress_line import say
from parley.cli.shared_options import as_json
from parley.cli.shell_completion import complete_models
from parley.config import models_file, task_catalogue
from parley.config.experiment import Experiment
from parley.config.extras import missing_extras
from parley.config.prices import prices_for
from parley.errors import ProviderBroken, UsageError
from parley.money import Price
from parley.participants import _registry as participants
from parley.participants.bot import ANYWHERE
from parley.participants.http import Options
from parley.providers import _registry as providers
from parley.providers._env_file import find_env_faults, find_setting
from parley.providers._secrets import address_without_secrets, redact
from parley.providers._traits import Traits
from parley.rules.parameters import build_dataclass

ABILITIES = {
    "structured": "structured output",
    "reasoning": "reasoning",
    "caching": "caching",
    "system_role": "system role",
}


@click.command()
@click.argument("names", nargs=-1, metavar="[MODEL]...", shell_complete=complete_models)
@as_json
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List providers, which API keys are set, other participants such as bots, and your aliases.

    With MODEL (PROVIDER/NAME or an alias), print its price in USD per million tokens.
    """
    for fault in find_env_faults():
        say(fault)
    asked = Experiment("")
    for name in names:
        asked.add_model(name)
    own = asked.models if names else models_file.shared_models()
    prices = prices_for(own)
    faults = (
        {}
        if names
        else {alias: fault for alias, entry in own.items() if (fault := find_entry_fault(entry))}
    )
    priced = {alias: None if alias in faults else price_as_json(prices.of(alias)) for alias in own}
    if names:
        facts: dict[str, Any] = {"aliases": own, "prices": priced}
    else:
        tasks, broken = task_catalogue.installed_tasks()
        for fault in broken:
            say(fault)
        bots = {name: sorted(task.bots) for name, task in tasks.items()}
        bots = {"any task": sorted(ANYWHERE), **bots}
        served = [describe_model(name) for name in providers.provider_names()]
        facts = {
            "providers": served,
            "participants": participants.participant_kinds(),
            "bots": bots,
            "aliases": own,
            "prices": priced,
        }
        facts["faults"] = faults
    if as_json:
        click.echo(redact(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode()))
        return
    if not names:
        print_model(facts)
    if own and not names:
        click.echo(f"\naliases in {models_file.models_path()}:")
    for alias, entry in own.items():
        options = ", ".join(describe_options(entry))
        then = f": ERROR: {faults[alias]}" if alias in faults else format_price(priced[alias])
        click.echo(
            redact(f"  {alias:<20} {entry['model']}" + (f" ({options})" if options else "") + then)
        )


def describe_options(entry: models_file.Entry) -> Iterator[str]:
    """The options of an alias, including those from `defaults`."""
    try:
        whole = models_file.with_defaults(entry)
    except ProviderBroken:  # the list of providers reports it
        whole = entry
    for name, value in whole.items():
        if name != "model":
            yield f"{name} {value}" + ("" if name in entry else " from `defaults` in models.yaml")


def find_entry_fault(entry: models_file.Entry) -> str:
    """Why an alias cannot be used, as far as its options show; empty if it can."""
    family, _, name = str(entry["model"]).partition("/")
    try:
        if family not in participants.participant_kinds():
            own = set(providers.COMMON)
            providers.refuse_unknown(
                family, name, [option for option in entry if option not in own | {"model"}]
            )
        elif family == "http":
            build_dataclass(
                Options,
                {
                    key: value
                    for key, value in entry.items()
                    if key not in ("model", *participants.LIMITS)
                },
                "option of",
                entry["model"],
            )
    except UsageError as wrong:
        return str(wrong)
    return ""


def print_model(facts: dict[str, Any]) -> None:
    """Print all participants; providers whose key is set are marked."""
    for row in facts["providers"]:
        mark = "*" if row["key_found"] else " "
        if row["error"]:
            click.echo(f"{row['provider'] + '/…':<22}{mark}{row['error']}")
            continue
        missing = (
            "not set" if row["key_needed"] else "not set; needed only if your server asks for a key"
        )
        key = (
            f"{row['key'] if row['key_found'] else row['keys']} "
            f"{'is set' if row['key_found'] else missing}"
        )
        can = [words for ability, words in ABILITIES.items() if row["abilities"][ability]]
        about = f"{row['about'].rstrip('.')} ({key if row['key'] else row['key_told']})"
        click.echo(
            f"{row['provider'] + '/…':<22}{mark}{about}" + (f"; {', '.join(can)}" if can else "")
        )
    if any(row["key_found"] for row in facts["providers"]):
        click.echo("* API key is set")
    click.echo("\nscripted/PATH          replies from a file, one per line")
    click.echo("human/terminal         a person at this terminal")
    click.echo(
        "human/web              a person in a browser, with a secret link (needs the extra `web`)"
    )
    click.echo(
        "python/MODULE:FUNCTION a Python function that gets the messages a seat has "
        "seen and returns a reply"
    )
    click.echo(
        "http/URL               an HTTP service that gets the messages a seat has seen as JSON"
    )
    for line in missing_extras():
        click.echo(f"extra {line}")
    for task, names in facts["bots"].items():
        click.echo(f"\nbots for {task}: " + ", ".join(f"bot/{name}" for name in names))


def describe_model(name: str) -> dict[str, Any]:
    """A provider as JSON data: whether its key is set (never the key itself), or why it cannot be
    loaded."""
    try:
        provider, traits, error = (
            providers.provider_class(name),
            providers.provider_traits(name),
            None,
        )
    except ProviderBroken as wrong:
        provider, traits = None, Traits(key_known=False)
        error = f"cannot be loaded: {wrong.reason}"
    key, home = traits.key_variable, traits.home_env
    return {
        "provider": name,
        "error": error,
        "key": key,
        "keys": " or ".join(filter(None, [*traits.key_env_first, traits.key_env])) or None,
        "key_found": bool(key and find_setting(key)),
        "key_needed": traits.key_needed,
        "key_told": "needs no API key"
        if traits.key_known
        else "uses the API keys of the providers that it calls",
        "base_url": address_without_secrets((home and find_setting(home)) or traits.home),
        "about": (((provider and provider.__doc__) or "").strip().splitlines() or [""])[0],
        "abilities": list_abilities(provider, traits),
    }


def list_abilities(provider: Any, traits: Traits) -> dict[str, bool | None]:
    """The features of a provider; None if they depend on the model."""
    return {
        "structured": traits.forms != () and "structured" in {f.name for f in fields(provider)}
        if is_dataclass(provider)
        else None,
        "reasoning": None if traits.thinks_by is None else bool(traits.thinks_by),
        "caching": traits.caches,
        "system_role": traits.system_role,
    }


def price_as_json(price: Price | None) -> dict[str, Any] | None:
    """A price as JSON data; null if it is unknown."""
    if price is None:
        return None
    rate, later = price.rates[0], [rate._asdict() for rate in price.rates[1:]]
    facts = {
        "input": rate.input,
        "cached_input": rate.cached_input,
        "output": rate.output,
        "source": price.source,
    }
    return {**facts, **({"above": later} if later else {})}


def format_price(price: dict[str, Any] | None) -> str:
    """A price in words."""
    if price is None:
        return ": price unknown"
    if price["source"] == "free":
        return ": free"
    cached = (
        f" ({price['cached_input']:g} cached)" if price["cached_input"] != price["input"] else ""
    )
    more = "; long prompts cost more" if "above" in price else ""
    return (
        f": {price['input']:g} USD input{cached}, {price['output']:g} output per million tokens"
        f"{more} [{price['source']}]"
    )
