"""Parley by the way of every run: prepared, played, each reply in the journal before it is used."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import aiohttp  # noqa: F401  what a run imports late is imported here, so that it is not measured
import uvloop  # noqa: F401
from dialogue import Haggling
from workload import OPTIONS, SAID, arguments, measure

import parley.participants.python
import parley.providers.openai_compatible
import parley.store.sqlite.create
import parley.store.sqlite.folder
from parley import View
from parley.config.prepare import prepare_new
from parley.runs import event_loop
from parley.runs import start as runs
from parley.store import open_store
from parley.store.config import Config

given = arguments()
held, all_held = 0, asyncio.Event()


async def say(view: View) -> str:
    """A player that needs no time."""
    return SAID


async def wait_and_say(view: View) -> str:
    """A player that keeps its match at the last question until every match has got there."""
    global held
    if view.round == given.calls:
        held += 1
        if held == given.matches:
            all_held.set()
        await all_held.wait()
    return SAID


def work() -> Path:
    functions: dict[str, Any] = {}
    if given.url:
        player = {"model": "openai-compatible/fixed", "base_url": given.url, **OPTIONS}
    else:
        player = {"model": "python/with_parley:say"}
        functions = dict.fromkeys("ab", wait_and_say if given.hold else say)
    config = Config(
        task="haggling",
        params={"calls": given.calls},
        models={"a": player, "b": player},
        contestants=["a", "b"],
        repeats=given.matches // 2,  # each plays both roles
        concurrency=given.concurrency,
    )
    prepared = prepare_new(config, task=Haggling(given.calls), functions=functions)
    ending = event_loop.run_in_new_loop(runs.play_new_run(prepared, open_store(given.folder)))
    if ending.state != "done":
        raise SystemExit(f"the run ended {ending.state}: {ending.reason}")
    return Path(ending.ref.location)


def check(path: Path) -> dict[str, Any]:
    """Every reply is in the file, or nothing was measured."""
    connection = sqlite3.connect(path)
    (kept,) = connection.execute("SELECT COUNT(*) FROM calls").fetchone()
    (done,) = connection.execute("SELECT COUNT(*) FROM matches WHERE state = 'done'").fetchone()
    connection.close()
    if (kept, done) != (given.matches * given.calls, given.matches):
        raise SystemExit(f"the journal holds {kept} calls and {done} finished matches")
    return {"held": held, "source": parley.__file__}


measure(given, work, check)
