"""`parley doctor`: what this machine has."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import orjson

from parley import __version__, eventloop, providers
from parley import store as stores
from parley.cli.options import as_json, in_store
from parley.errors import ParleyError
from parley.providers.keys import address, setting
from parley.store.filesystem import is_network, kind_of

PACKAGES = ("aiohttp", "orjson", "uvloop", "click", "rich", "fastjsonschema")


@click.command()
@in_store
@as_json
def command(store: str | None, as_json: bool) -> int:
    """Say which keys are found, which endpoints answer, where runs go, and how code would be isolated."""
    facts = examined(store)
    if as_json:
        click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
        return 0
    click.echo(f"parley {facts['parley']}, Python {facts['python']}, SQLite {facts['sqlite']}, {facts['system']}")
    click.echo("packages: " + ", ".join(f"{name} {found or 'missing'}" for name, found in facts["packages"].items()))
    click.echo(
        f"store: {facts['store']['path']} ({facts['store']['filesystem'] or 'file system unknown'}): {facts['store']['state']}"
    )
    click.echo(f"sandbox: {facts['sandbox']}: model-written code is not run")
    for row in facts["endpoints"]:
        click.echo(f"{row['provider']:<20} key {row['key']:<10} {row['base_url'] or 'no address':<34} {row['state']}")
    return 0


def examined(store: str | None) -> dict[str, Any]:
    """Everything that is looked at, in plain data."""
    place = stores.folder(store)
    writable = os.access(place if place.exists() else place.absolute().parent, os.W_OK)
    state = "cannot be written" if not writable else "rollback journal (network)" if is_network(place) else "ready"
    return {
        "parley": __version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: installed(name) for name in PACKAGES},
        "store": {"path": str(place), "filesystem": kind_of(place), "state": state},
        "sandbox": "none",
        "endpoints": eventloop.finished(endpoints()),
    }


def installed(name: str) -> str | None:
    """The version of a package, if it is there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


async def endpoints() -> list[dict[str, Any]]:
    """Every provider that has an address here, and whether somebody answers there."""
    import asyncio

    rows = []
    for name in providers.names():
        provider = providers.class_of(name)
        key = provider.key_env
        found = "none" if not key else "found" if setting(key) else "not set" if provider.key_needed else "optional"
        base = (provider.home_env and setting(provider.home_env)) or provider.home
        rows.append({"provider": name, "key": found, "base_url": base, "state": "not asked"})
    asked = [row for row in rows if (row["base_url"] and row["key"] != "not set") or row["provider"] in ("vllm", "ollama")]
    for row, state in zip(asked, await asyncio.gather(*(reached(row["base_url"]) for row in asked)), strict=True):
        row["state"] = state
    return rows


async def reached(base: str) -> str:
    """Whether somebody answers at an address."""
    import aiohttp

    try:
        url = address(base, "base_url", "/models")
        limit = aiohttp.ClientTimeout(total=3)
        async with aiohttp.ClientSession(timeout=limit, trust_env=True) as session, session.get(url) as response:
            return f"answers (HTTP {response.status})"
    except ParleyError as wrong:
        return str(wrong)
    except (aiohttp.ClientError, OSError, TimeoutError) as wrong:
        return f"does not answer ({type(wrong).__name__})"
