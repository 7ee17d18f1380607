"""`parley doctor`: what this machine has."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import orjson

from parley import __version__, aliases, eventloop, providers
from parley import store as stores
from parley.cli.options import as_json, in_store
from parley.errors import ParleyError
from parley.expect import clip
from parley.participants import LIMITS
from parley.participants.model import Model
from parley.pool import Turn
from parley.providers.keys import address, expanded, redacted, setting, shown_address
from parley.providers.protocol import Request
from parley.store.filesystem import is_network, kind_of

PACKAGES = ("aiohttp", "orjson", "uvloop", "click", "rich", "fastjsonschema", "genai-prices")
UNASKED: dict[str, Any] = {"model": None, "latency": None, "served": None, "error": None}
PATIENCE = 20.0  # seconds that a call may take here


@click.command()
@click.option("--no-calls", is_flag=True, help="Ask no model for a token; only see who answers.")
@in_store
@as_json
def command(no_calls: bool, store: str | None, as_json: bool) -> int:
    """Say which keys are found, which endpoints answer, where runs go, and how code would be isolated.

    Where a key is set or a server runs here, and for every alias in models.yaml, one model is asked for a word.
    """
    facts = examined(store, calls=not no_calls)
    if as_json:
        click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
        return 0
    click.echo(f"parley {facts['parley']}, Python {facts['python']}, SQLite {facts['sqlite']}, {facts['system']}")
    click.echo("packages: " + ", ".join(f"{name} {found or 'missing'}" for name, found in facts["packages"].items()))
    click.echo(
        f"store: {facts['store']['path']} ({facts['store']['filesystem'] or 'file system unknown'}): {facts['store']['state']}"
    )
    click.echo(f"sandbox: {facts['sandbox']}: {facts['isolation']}")
    for row in facts["endpoints"]:
        asked = f"; {row['model']}: {outcome(row)}" if row["model"] else ""
        click.echo(f"{row['provider']:<20} key {row['key']:<10} {row['base_url'] or 'no address':<34} {row['state']}{asked}")
    for row in facts["models"]:
        click.echo(f"{row['alias']:<20} {row['model']:<49} {outcome(row)}")
    return 0


def outcome(row: dict[str, Any]) -> str:
    """What came of asking for one token, in words."""
    if row["error"]:
        return str(row["error"])
    served = f" as {row['served']}" if row["served"] else ""
    return f"answers{served} after {row['latency']:.2f} s" if row["latency"] is not None else "not asked"


def examined(store: str | None, calls: bool = True) -> dict[str, Any]:
    """Everything that is looked at, in plain data."""
    reachable, named = eventloop.finished(endpoints(calls))
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
        **sandbox(),
        "endpoints": reachable,
        "models": named,
    }


def sandbox() -> dict[str, str]:
    """How code that models write would be kept apart here: tried out, not looked up."""
    from parley.sandbox.executor import Sandbox

    tried = Sandbox()
    try:
        kind = eventloop.finished(tried.prove())
    except ParleyError as wrong:
        return {"sandbox": "none", "isolation": f"code that models write is not run: {wrong}"}
    finally:
        tried.close()
    how = "new namespaces for each program" if kind.nested else "a sandbox for each program, which is slower"
    memory = "memory bounded by the kernel" if tried.bounded else "memory watched"
    return {"sandbox": kind.name, "isolation": f"tried out and holds; {how}, {memory}"}


def installed(name: str) -> str | None:
    """The version of a package, if it is there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


async def endpoints(calls: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every provider that has an address here and every alias: who answers there, and what a model says to one token."""
    import asyncio

    rows = []
    for name in providers.names():
        traits = providers.traits(name)
        key, home = traits.key_variable, traits.home_env
        found = "none" if not key else "found" if setting(key) else "not set" if traits.key_needed else "optional"
        base = (home and setting(home)) or traits.home
        rows.append({"provider": name, "key": found, "base_url": base, "state": "not asked", **UNASKED})
    asked = [row for row in rows if row["base_url"] and row["key"] != "not set"]
    for row, state in zip(asked, await asyncio.gather(*(reached(row["base_url"]) for row in asked)), strict=True):
        row["state"] = state
    named = [
        {"alias": alias, **UNASKED, "model": entry["model"], "options": entry}
        for alias, entry in aliases.known().items()
        if str(entry["model"]).partition("/")[0] in [row["provider"] for row in rows if row["base_url"] or "base_url" in entry]
    ]
    if calls:
        answering = [row for row in asked if row["state"].startswith("answers")]
        await asyncio.gather(*(ask_small(row) for row in answering), *(ask(row, row["options"]) for row in named))
    for row in named:
        del row["options"]
    for row in rows:
        row["base_url"] = shown_address(row["base_url"])
    return rows, named


async def ask_small(row: dict[str, Any]) -> None:
    """Ask somebody small at an endpoint: the one that is known there, or on a server of one's own the first it lists."""
    name = providers.traits(row["provider"]).small or (await first_listed(row["base_url"]) if row["key"] != "found" else None)
    if name:
        row["model"] = name
        await ask(row, {"model": f"{row['provider']}/{name}"})


async def ask(row: dict[str, Any], entry: dict[str, Any]) -> None:
    """Ask a model for one token; the answer, or what is wrong, goes into the row."""
    family, _, name = str(entry["model"]).partition("/")
    options = {key: value for key, value in entry.items() if key not in ("model", *LIMITS)}
    try:
        model = Model.made(family, expanded(name), {**options, "max_tokens": 16, "deadline": PATIENCE})
        try:
            reply = await model.provider.complete(Request([Turn("user", "Hello")]))
        finally:
            await model.close()
    except Exception as wrong:  # whatever it is, it is what the doctor was asked for
        row["error"] = redacted(clip(str(wrong) or type(wrong).__name__, 300))
        return
    row["latency"], row["served"] = reply.latency, reply.model


async def first_listed(base: str) -> str | None:
    """The first model that a server says it has."""
    import aiohttp

    try:
        url, limit = address(base, "base_url", "/models"), aiohttp.ClientTimeout(total=3)
        async with aiohttp.ClientSession(timeout=limit, trust_env=True) as session, session.get(url) as response:
            found = (await response.json(content_type=None))["data"][0]["id"]
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, IndexError, TypeError, ParleyError):
        return None
    return found if isinstance(found, str) else None


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
