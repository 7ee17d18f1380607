"""`parley models`: who can sit in a seat, and what that costs."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import click
import orjson

from parley import aliases, catalogue, participants, providers
from parley.cli.options import as_json
from parley.experiment import Experiment
from parley.participants.bot import ANYWHERE
from parley.prices import Price, Prices
from parley.providers.keys import redacted, setting, shown_address
from parley.providers.traits import Traits

ABILITIES = {"structured": "structured output", "reasoning": "reasoning", "caching": "caching", "system_role": "system role"}


@click.command()
@click.argument("names", nargs=-1, metavar="[MODEL]...")
@as_json
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List providers with their keys and abilities, other participants, the bots of each task, and your own aliases.

    With MODEL (PROVIDER/NAME or an alias), say what each costs, in USD per million tokens.
    """
    asked = Experiment("")
    for name in names:
        asked.enter(name)
    own = asked.models if names else aliases.known()
    prices = Prices(own)
    priced = {alias: shown(prices.of(alias)) for alias in own}
    if names:
        facts: dict[str, Any] = {"aliases": own, "prices": priced}
    else:
        bots = {task: sorted(catalogue.task_class(task).bots) for task in catalogue.names()}
        bots = {"any task": sorted(ANYWHERE), **bots}
        served = [described(name) for name in providers.names()]
        facts = {"providers": served, "participants": participants.kinds(), "bots": bots, "aliases": own, "prices": priced}
    if as_json:
        click.echo(redacted(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode()))
        return
    if not names:
        told(facts)
    if own and not names:
        click.echo(f"\naliases in {aliases.place()}:")
    for alias, entry in own.items():
        options = ", ".join(f"{name} {value}" for name, value in entry.items() if name != "model")
        click.echo(redacted(f"  {alias:<20} {entry['model']}" + (f" ({options})" if options else "") + cost_of(priced[alias])))


def told(facts: dict[str, Any]) -> None:
    """Everybody who can sit in a seat, in lines."""
    for row in facts["providers"]:
        missing = "not set" if row["key_needed"] else "not set, needed only if the server wants one"
        key = f"{row['key']} {'found' if row['key_found'] else missing}" if row["key"] else row["key_told"]
        can = [words for ability, words in ABILITIES.items() if row["abilities"][ability]]
        click.echo(f"{row['provider'] + '/…':<22} {row['about'].rstrip('.')} ({key})" + (f"; {', '.join(can)}" if can else ""))
    click.echo("\nscripted/PATH          replies from a file, one a line")
    click.echo("human/terminal         a person, here")
    click.echo("python/MODULE:FUNCTION a function from the view to a reply")
    click.echo("http/URL               a service that takes the view as JSON")
    for task, names in facts["bots"].items():
        click.echo(f"\nbots for {task}: " + ", ".join(f"bot/{name}" for name in names))


def described(name: str) -> dict[str, Any]:
    """A provider in plain data: whether its key is found, never its value."""
    provider, traits = providers.class_of(name), providers.traits(name)
    key, home = traits.key_variable, traits.home_env
    return {
        "provider": name,
        "key": key,
        "key_found": bool(key and setting(key)),
        "key_needed": traits.key_needed,
        "key_told": "no key needed" if traits.key_known else "keys as its providers want them",
        "base_url": shown_address((home and setting(home)) or traits.home),
        "about": ((provider.__doc__ or "").strip().splitlines() or [""])[0],
        "abilities": abilities(provider, traits),
    }


def abilities(provider: Any, traits: Traits) -> dict[str, bool | None]:
    """What a provider can pass on to its models; None where it depends on them."""
    return {
        "structured": traits.forms != () and "structured" in {f.name for f in fields(provider)}
        if is_dataclass(provider)
        else None,
        "reasoning": None if traits.thinks_by is None else bool(traits.thinks_by),
        "caching": traits.caches,
        "system_role": traits.system_role,
    }


def shown(price: Price | None) -> dict[str, Any] | None:
    """A price in plain data; null where nobody knows it."""
    if price is None:
        return None
    rate, later = price.rates[0], [rate._asdict() for rate in price.rates[1:]]
    facts = {"input": rate.input, "cached_input": rate.cached_input, "output": rate.output, "source": price.source}
    return {**facts, **({"above": later} if later else {})}


def cost_of(price: dict[str, Any] | None) -> str:
    """A price in words."""
    if price is None:
        return ": price unknown"
    if price["source"] == "free":
        return ": free"
    cached = f" ({price['cached_input']:g} cached)" if price["cached_input"] != price["input"] else ""
    more = "; more for long prompts" if "above" in price else ""
    return f": {price['input']:g} USD in{cached}, {price['output']:g} out per million tokens{more} [{price['source']}]"
