"""Durable acknowledgements of one journal: callers that append replies as fast as they are
acknowledged.

    python appends.py STORE --callers N --seconds S

Prints one line of JSON. CPU is that of this process with all its threads, the server of a database
not included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from itertools import count

from parley.config.prepare import prepare_new
from parley.match.protocol import Reply, Usage
from parley.match.record import RecordedCall
from parley.plans import MatchSpec
from parley.rules.pool import Seat
from parley.runs import event_loop
from parley.store import open_store
from parley.store.config import Config
from parley.store.types import NewRun

TEXT = "I would give you nine baskets of pears for five sacks of walnuts. " * 10
USAGE = Usage(500, 0, 100, 0, 0)
PLAYERS = {"a": Seat("players", 1), "b": Seat("players", 2)}
SEATS = tuple(PLAYERS.values())
WARM_UP = 0.5  # seconds


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def append_replies(place: str, callers: int, seconds: float) -> dict[str, float]:
    """Let callers append replies for a while: acknowledgements and commits a second, and the CPU
    of one acknowledgement."""
    models = {alias: {"model": "bot/random"} for alias in PLAYERS}
    prepared = prepare_new(Config("public_goods", {}, models, [*PLAYERS]))
    store = open_store(place)
    journal = await store.create(
        NewRun(f"appends-{time.time_ns()}", prepared.config, prepared.identity)
    )
    seats = {seat: alias for alias, seat in PLAYERS.items()}
    specs = [
        MatchSpec(number, f"block-{number}", None, 0, 1, seats) for number in range(1, callers + 1)
    ]
    await journal.add_matches(specs)
    records = [journal.lease(spec) for spec in specs]
    acknowledged, is_over = 0, False

    async def append_until_over(number: int) -> None:
        nonlocal acknowledged
        for round in count(1):
            if is_over:
                return
            reply = Reply(TEXT, usage=USAGE, model_served="m", latency=0.1)
            digest = round.to_bytes(16, "big")
            call = RecordedCall(round, SEATS[round % 2], 0, digest, reply, time.time())
            await records[number].append(call)
            acknowledged += 1

    tasks = [asyncio.ensure_future(append_until_over(number)) for number in range(callers)]
    await asyncio.sleep(WARM_UP)
    before, commits, cpu, wall = acknowledged, journal.commits, cpu_seconds(), time.perf_counter()
    await asyncio.sleep(seconds)
    done, cpu = acknowledged - before, cpu_seconds() - cpu
    wall, commits = time.perf_counter() - wall, journal.commits - commits
    is_over = True
    await asyncio.gather(*tasks)
    await journal.close()
    with store.read(journal.ref) as reader:
        if (kept := reader.calls.count()) != acknowledged:
            raise SystemExit(f"{acknowledged} replies were acknowledged, {kept} are on record")
    return {"acks_s": done / wall, "commits_s": commits / wall, "cpu_us": cpu / done * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--callers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    found = event_loop.run_in_new_loop(append_replies(given.store, given.callers, given.seconds))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
