"""A whole run in one process, in a store: the dialogue of the overhead benchmark with players that
need no time.

    python whole_run.py STORE --matches N --concurrency N

Prints one line of JSON. CPU is that of this process with all its threads, the server of a database
not included.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "overhead"))

import argparse

import uvloop  # noqa: F401  what a run imports late is imported here, so that it is not measured
from appends import cpu_seconds
from dialogue import Haggling
from workload import SAID

import parley.participants.python  # noqa: F401
from parley import View
from parley.config.prepare import prepare_new
from parley.runs import event_loop, start
from parley.store import open_store
from parley.store.config import Config

CALLS = 6  # of one match


async def say(view: View) -> str:
    """A player that needs no time."""
    return SAID


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--matches", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=200)
    given = parser.parse_args()
    store = open_store(given.store)
    store.refs()  # imports the store, and creates what it needs
    models = {alias: {"model": "python/whole_run:say"} for alias in "ab"}
    config = Config(
        "haggling",
        {"calls": CALLS},
        models,
        ["a", "b"],
        repeats=given.matches // 2,
        concurrency=given.concurrency,
    )
    prepared = prepare_new(config, task=Haggling(CALLS), functions=dict.fromkeys("ab", say))
    cpu, wall = cpu_seconds(), time.perf_counter()
    work = start.play_new_run(prepared, store)
    ending = event_loop.run_in_new_loop(work)
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    with store.read(ending.ref) as reader:
        kept = reader.calls.count()
    if (ending.state, kept) != ("done", given.matches * CALLS):
        raise SystemExit(f"the run ended {ending.state} ({ending.reason}) with {kept} replies")
    print(json.dumps({"calls_s": kept / wall, "cpu_us": cpu / kept * 1e6}), flush=True)


if __name__ == "__main__":
    main()
