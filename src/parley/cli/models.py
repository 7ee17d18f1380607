"""`parley models`: who can sit in a seat."""

from __future__ import annotations

from typing import Any

import click
import orjson

from parley import aliases, catalogue, participants, providers
from parley.cli.options import as_json
from parley.participants.bot import ANYWHERE
from parley.providers.keys import redacted, setting


@click.command()
@as_json
def command(as_json: bool) -> None:
    """List providers with their keys' variables, other participants, the bots of each task, and your own aliases."""
    served: list[dict[str, Any]] = []
    for name in providers.names():
        provider = providers.class_of(name)
        key = getattr(provider, "key_env", None)
        served.append(
            {
                "provider": name,
                "key": key,
                "key_found": bool(key and setting(key)),
                "key_needed": bool(getattr(provider, "key_needed", False)),
                "base_url": (provider.home_env and setting(provider.home_env)) or provider.home,
                "about": (provider.__doc__ or "").strip().splitlines()[0],
            }
        )
    bots = {task: sorted(catalogue.task_class(task).bots) for task in catalogue.names()}
    bots = {"any task": sorted(ANYWHERE), **bots}
    own = aliases.known()
    facts = {"providers": served, "participants": participants.kinds(), "bots": bots, "aliases": own}
    if as_json:
        click.echo(redacted(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode()))
        return
    for row in served:
        missing = "not set" if row["key_needed"] else "not set, needed only if the server wants one"
        key = f"{row['key']} {'found' if row['key_found'] else missing}" if row["key"] else "no key needed"
        click.echo(f"{row['provider'] + '/…':<22} {row['about']} ({key})")
    click.echo("\nscripted/PATH          replies from a file, one a line")
    click.echo("human/terminal         a person, here")
    click.echo("python/MODULE:FUNCTION a function from the view to a reply")
    click.echo("http/URL               a service that takes the view as JSON")
    for task, names in bots.items():
        click.echo(f"\nbots for {task}: " + ", ".join(f"bot/{name}" for name in names))
    if own:
        click.echo(f"\naliases in {aliases.place()}:")
    for alias, entry in own.items():
        options = ", ".join(f"{name} {value}" for name, value in entry.items() if name != "model")
        click.echo(redacted(f"  {alias:<20} {entry['model']}" + (f" ({options})" if options else "")))
