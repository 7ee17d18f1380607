"""`parley doctor`: check keys, endpoints, sandbox and versions."""

from __future__ import annotations

import platform
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import orjson

from parley import __version__
from parley.cli.progress_line import say
from parley.cli.shared_options import allow_options, as_json, in_store, read_allowed
from parley.config import models_file
from parley.config.extras import EXTRAS, missing_extras
from parley.config.trust import Allowed, check_model
from parley.errors import ParleyError, ProviderBroken
from parley.match.protocol import UNLIMITED, Reply, Request
from parley.participants import http
from parley.participants._model import Model
from parley.participants._registry import LIMITS
from parley.providers import _registry as providers
from parley.providers._env_file import find_env_faults, find_setting
from parley.providers._secrets import (
    address_without_secrets,
    complete_address,
    expand_references,
    redact,
)
from parley.providers._served_model import ServedModel
from parley.rules.pool import Seat, Turn, View
from parley.rules.readers import Text
from parley.rules.task import Task
from parley.runs import event_loop
from parley.store import find_sqlite_version, open_store
from parley.tables import shorten

PACKAGES = ("aiohttp", "orjson", "uvloop", "click", "rich", "fastjsonschema", "genai-prices")
UNASKED: dict[str, Any] = {
    "model": None,
    "latency": None,
    "model_served": None,
    "error": None,
    "note": None,
}
PATIENCE = 20.0  # seconds for a call


@click.command()
@click.option(
    "--no-calls", is_flag=True, help="Check that endpoints can be reached, without calling a model."
)
@allow_options
@in_store
@as_json
def command(no_calls: bool, store: str | None, as_json: bool, **options: Any) -> int:
    """Check keys, endpoints, the store, the sandbox and versions.

    Each provider with a key, each server on this machine and each alias in models.yaml gets one
    short call. The exit code is 1 if something that you have configured does not work.
    """
    for fault in find_env_faults():
        say(fault)
    allowed = read_allowed(options).with_keys_at(models_file.keys_at_trusted_hosts())
    facts = examine_machine(store, allowed, calls=not no_calls)
    code = int(
        facts["store"]["path"] is None
        or any(map(is_faulty, facts["endpoints"]))
        or any(row["error"] for row in facts["models"])
    )
    if as_json:
        click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
        return code
    click.echo(
        f"parley {facts['parley']}, Python {facts['python']}, SQLite {facts['sqlite']}, "
        f"{facts['system']}"
    )
    click.echo(
        "packages: "
        + ", ".join(f"{name} {found or 'missing'}" for name, found in facts["packages"].items())
    )
    place = facts["store"]
    kind = place["filesystem"] or "file system unknown"
    click.echo(
        f"store: {place['path']} ({kind}): {place['state']}"
        if place["path"] is not None
        else f"store: {place['state']}"
    )
    for line in missing_extras():
        click.echo(f"extra {line}")
    browser = "can" if facts["extras"]["web"] else "cannot"
    click.echo(
        f"people: can play at the terminal (human/terminal) and {browser} play in a browser "
        "(human/web)"
    )
    click.echo(f"sandbox: {facts['sandbox']}: {facts['isolation']}")
    for row in facts["endpoints"]:
        asked = [f"{row['model']}: {format_outcome(row)}"] if row["model"] else []
        # errors first
        said = "; ".join([*asked, row["state"]] if row["error"] else [row["state"], *asked])
        click.echo(
            f"{row['provider']:<20} key {row['key']:<10} {row['base_url'] or 'no base URL':<34} "
            f"{said}"
        )
    for row in facts["models"]:
        click.echo(f"{row['alias']:<20} {row['model']:<49} {format_outcome(row)}")
    return code


def is_faulty(row: dict[str, Any]) -> bool:
    """Whether an endpoint does not work although the user has set its key or its address."""
    if row["state"].startswith("cannot be loaded"):
        return True
    home = providers.provider_traits(row["provider"]).home_env
    wanted = row["key"] == "found" or bool(home and find_setting(home))
    return bool(row["error"]) or (wanted and not row["state"].startswith(("answers", "not called")))


def format_outcome(row: dict[str, Any]) -> str:
    """The outcome of a test call, in words."""
    if row["error"]:
        return str(row["error"])
    served = f" as {row['model_served']}" if row["model_served"] else ""
    return (
        f"answers{served} after {row['latency']:.2f} s"
        if row["latency"] is not None
        else "not called" + (f" ({row['note']})" if row["note"] else "")
    )


def examine_machine(store: str | None, allowed: Allowed, calls: bool = True) -> dict[str, Any]:
    """Everything that `parley doctor` checks, as JSON data."""
    reachable, named = event_loop.run_sync(check_endpoints(calls, allowed))
    return {
        "parley": __version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "sqlite": find_sqlite_version(),
        "packages": {name: installed_version(name) for name in PACKAGES},
        "extras": {extra.name: not extra.missing for extra in EXTRAS},
        "store": check_store(store),
        **check_sandbox(),
        "endpoints": reachable,
        "models": named,
    }


def check_store(given: str | None) -> dict[str, str | None]:
    """Where runs are stored, and whether they can be read and written there. The path is None if
    the store cannot be used."""
    try:
        place = open_store(given).check()
    except ParleyError as wrong:
        return {"path": None, "filesystem": None, "state": str(wrong)}
    return {"path": place.location, "filesystem": place.filesystem, "state": place.state}


def check_sandbox() -> dict[str, str]:
    """How model-written code would be isolated here; found by trying it out."""
    from parley.sandbox.executor import Sandbox

    tried = Sandbox()
    try:
        kind = event_loop.run_sync(tried.prove())
    except ParleyError as wrong:
        return {"sandbox": "none", "isolation": f"model-written code cannot run: {wrong}"}
    finally:
        tried.close()
    how = (
        "starts each program in new namespaces"
        if kind.nested
        else f"starts a new sandbox for each program, which is slower ({kind.reason})"
    )
    memory = "the kernel limits memory" if tried.is_memory_limited else "Parley monitors memory"
    return {"sandbox": kind.name, "isolation": f"tested and works; {how}, {memory}"}


def installed_version(name: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


async def check_endpoints(
    calls: bool, allowed: Allowed
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Check every provider with an address and every alias: does the address answer, and does a
    model reply to a test call?"""
    import asyncio

    rows = [describe_endpoint(name) for name in providers.provider_names()]
    asked = [row for row in rows if row["base_url"] and row["key"] != "not set"]
    for row, state in zip(
        asked, await asyncio.gather(*(check_address(row["base_url"]) for row in asked)), strict=True
    ):
        row["state"] = state
    local = [row["provider"] for row in rows if row["in_process"]]
    named = [
        {"alias": alias, **UNASKED, "model": entry["model"], "options": entry}
        for alias, entry in models_file.shared_models().items()
        if (family := str(entry["model"]).partition("/")[0]) == "http"
        or (providers.is_provider(family) and family not in local)
    ]
    if calls:
        answering = [row for row in asked if row["state"].startswith("answers")]
        await asyncio.gather(
            *(ask_small_model(row, allowed) for row in answering),
            *(ask_for_token(row, row["options"], allowed) for row in named),
        )
    for row in named:
        del row["options"]
    for row in rows:
        row["base_url"] = address_without_secrets(row["base_url"])
        del row["in_process"]
    return rows, named


def describe_endpoint(name: str) -> dict[str, Any]:
    """A provider, its key and its address, before any call."""
    try:
        traits = providers.provider_traits(name)
    except ProviderBroken as wrong:
        return {
            "provider": name,
            "key": "unknown",
            "base_url": None,
            "state": f"cannot be loaded: {wrong.reason}",
            **UNASKED,
            "in_process": False,
        }
    key, home = traits.key_variable, traits.home_env
    found = (
        "none"
        if not key
        else "found"
        if find_setting(key)
        else "not set"
        if traits.key_needed
        else "optional"
    )
    base = (home and find_setting(home)) or traits.home
    # it runs in this process, or finds its endpoint by its own rules
    inside = traits.unbilled or not traits.key_known
    return {
        "provider": name,
        "key": found,
        "base_url": base,
        "state": "not called",
        **UNASKED,
        "in_process": inside,
    }


async def ask_small_model(row: dict[str, Any], allowed: Allowed) -> None:
    """Call a small model at an endpoint: the known one, or on a local server the first it lists."""
    name = providers.provider_traits(row["provider"]).small or (
        await find_first_model(row["base_url"]) if row["key"] != "found" else None
    )
    if name:
        row["model"] = name
        await ask_for_token(row, {"model": f"{row['provider']}/{name}"}, allowed)


async def ask_for_token(row: dict[str, Any], entry: dict[str, Any], allowed: Allowed) -> None:
    """Make a test call; the answer or the error goes into the row."""
    family, _, name = str(entry["model"]).partition("/")
    options = {key: value for key, value in entry.items() if key not in ("model", *LIMITS)}
    try:
        check_model(entry, allowed)
        if family == "http":
            reply: Reply | str = await request_view(name, {**options, "deadline": PATIENCE})
        else:
            reply = await request_token(
                family, name, {**options, "max_tokens": 16, "deadline": PATIENCE}
            )
    except Exception as wrong:  # any error is a finding here
        row["error"] = shorten(redact(str(wrong)) or f"failed: {type(wrong).__name__}", 300)
        return
    if isinstance(reply, str):
        row["note"] = reply
    else:
        row["latency"], row["model_served"] = reply.latency, reply.model_served


async def request_token(family: str, name: str, options: dict[str, Any]) -> Reply | str:
    """The reply of a model; what a run does first, if it starts a server for the model. Limits that
    its provider does not take are left out."""
    known = {each.name for each in fields(providers.provider_class(family))}
    bounds = ("max_tokens", "deadline")
    model = Model.from_options(
        family,
        expand_references(name),
        {key: value for key, value in options.items() if key in known or key not in bounds},
    )
    try:
        if isinstance(model.provider, ServedModel) and not await model.provider.find_running():
            return model.provider.describe_start()
        return await model.provider.complete(Request([Turn("user", "Hello")]))
    finally:
        await model.close()


async def request_view(name: str, options: dict[str, Any]) -> Reply:
    """The reply of an HTTP service to a minimal view."""
    service = http.make(name, options, Task)
    try:
        return await service.reply(
            View(Seat("player"), 1, 0, [Turn("user", "Hello")], b"", Text(), None), UNLIMITED
        )
    finally:
        await service.close()


async def find_first_model(base: str) -> str | None:
    """The first model that a server lists."""
    import aiohttp

    try:
        url, limit = complete_address(base, "base_url", "/models"), aiohttp.ClientTimeout(total=3)
        async with (
            aiohttp.ClientSession(timeout=limit, trust_env=True) as session,
            session.get(url) as response,
        ):
            found = (await response.json(content_type=None))["data"][0]["id"]
    except (
        aiohttp.ClientError,
        OSError,
        TimeoutError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        ParleyError,
    ):
        return None
    return found if isinstance(found, str) else None


async def check_address(base: str) -> str:
    """Whether an address answers."""
    import aiohttp

    from parley.providers._connections import describe_http_failure

    try:
        url = complete_address(base, "base_url", "/models")
        limit = aiohttp.ClientTimeout(total=3)
        async with (
            aiohttp.ClientSession(timeout=limit, trust_env=True) as session,
            session.get(url) as response,
        ):
            return f"answers (HTTP {response.status})"
    except ParleyError as wrong:
        return str(wrong)
    except TimeoutError:
        return "does not answer (no reply within 3 s)"
    except (aiohttp.ClientError, OSError) as wrong:
        return f"does not answer ({describe_http_failure(wrong)})"
