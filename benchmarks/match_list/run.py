"""What lists of matches cost: the server's CPU of a page, and what the indexes cost the writer.

    python benchmarks/match_list/run.py [--quick] [--rounds 9] [--only pages] [--run FILE]

Prints one table and leaves with 1 if a bar is missed. Pages: a run of 100,000 matches, every filter
with every range of scores and every order, through the whole application. Writer: the same matches
recorded with and without the indexes, in alternating rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from make_run import make_run
from searches import list_queries
from starlette.testclient import TestClient

from parley.config.identity import metric_facts
from parley.match.match import Outcome
from parley.match.protocol import Reply, Usage
from parley.match.record import RecordedCall
from parley.plans import MatchSpec
from parley.rules.notes import WrittenNote
from parley.rules.pool import Message, Seat
from parley.rules.task import Metric
from parley.store import open_store
from parley.store.config import Config
from parley.store.journal import Journal
from parley.store.sqlite import run_writer, schema
from parley.store.sqlite.create import create_file
from parley.store.sqlite.run_writer import open_run_file
from parley.store.types import NewRun
from parley.web.app import make_app, make_site
from parley.web.safety import Safety

HOST = "127.0.0.1:8642"
MOST_SECONDS = 0.05  # of CPU, for a page
SEATS = {Seat("writer"): "a", Seat("editor"): "b"}
IDENTITY: dict[str, Any] = {
    "task": "t",
    "version": 1,
    "rule": "",
    "prompts": {},
    "parley": "0",
    "texts": {},
    "roles": {"writer": "contestant", "editor": "contestant"},
    "seats": {"writer": 1, "editor": 1},
    "metrics": [metric_facts(Metric("points", 0, 10, 1)), metric_facts(Metric("judge", 0, 10, 1))],
}
AT_A_TIME = 50  # matches in flight


def measure_pages(path: Path, rounds: int) -> list[tuple[float, float, str]]:
    """The median and the least CPU of each page, with its query, the slowest first."""
    app = make_app(make_site(open_store(path.parent)), Safety(frozenset({HOST})))
    client = TestClient(app, base_url=f"http://{HOST}")
    address = f"/run/{path.stem}/matches"
    client.get(address)
    taken: dict[str, list[float]] = {}
    for _ in range(rounds):
        for query in list_queries():
            text = urlencode(query)
            before = time.process_time()
            answer = client.get(f"{address}?{text}")
            taken.setdefault(text, []).append(time.process_time() - before)
            assert answer.status_code == 200, answer.text
    return sorted(
        ((statistics.median(each), min(each), text) for text, each in taken.items()), reverse=True
    )


async def record_matches(path: Path, matches: int) -> float:
    """Record matches as a run does; returns the CPU that this took."""
    config = Config("t", {}, {"a": {"model": "bot/x"}, "b": {"model": "bot/x"}}, ["a", "b"])
    create_file(path, NewRun("run", config, IDENTITY))
    journal = await open_run_file(path)
    numbers = range(1, matches + 1)
    await journal.add_matches(map(spec_of, numbers))
    before = time.process_time()
    for first in range(1, matches + 1, AT_A_TIME):
        numbers = range(first, min(first + AT_A_TIME, matches + 1))
        await asyncio.gather(*(record_match(journal, number) for number in numbers))
    await journal.close()
    return time.process_time() - before


def spec_of(n: int) -> MatchSpec:
    """A planned match."""
    return MatchSpec(n, str(n // 12), f"item-{n // 12}", 1, n, SEATS)


async def record_match(journal: Journal, number: int) -> None:
    """Six calls, four scores and the votes of two judges."""
    record, told = journal.lease(spec_of(number)), []
    for round in range(1, 4):
        for seat in SEATS:
            reply = Reply("A reply. " * 40, usage=Usage(tokens_in=300, tokens_out=90))
            await record.append(RecordedCall(round, seat, 0, b"0123456789abcdef", reply, 1.0))
            told += [
                Message(round, "ask", None, (seat,), "A question. " * 20),
                Message(round, "reply", seat, (seat,), None),
            ]
        record.circulate(told[-4:], len(told) - 4)
    scores = {seat: {"points": number * 7 % 1000 / 100, "judge": number % 10} for seat in SEATS}
    votes = {
        judge: {seat.key: {"score": number % 10} for seat in SEATS} for judge in ("one", "two")
    }
    outcome = Outcome("done", "", scores, 3, [], [WrittenNote(3, {"votes": votes}, "votes")])
    await journal.finish(number, outcome)


def measure_writer(matches: int, rounds: int) -> list[tuple[float, float, float]]:
    """CPU with and without the indexes, and the ratio of the sizes, in each round."""
    found = []
    tables, end = schema.TABLES, run_writer.END
    sums = ", " + ", ".join(f"{name} = {sql}" for name, sql in schema.DERIVED.items())
    for turn in range(rounds):
        taken, sizes = {}, {}
        for indexed in (True, False) if turn % 2 else (False, True):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "run.parley"
                if not indexed:
                    schema.TABLES = re.sub(r"CREATE INDEX \w+ ON [^;]*;", "", tables)
                    run_writer.END = end.replace(sums, "")
                    assert end != run_writer.END
                schema.own_objects.cache_clear()
                taken[indexed] = asyncio.run(record_matches(path, matches))
                sizes[indexed] = path.stat().st_size
                schema.TABLES, run_writer.END = tables, end
        found.append((taken[True], taken[False], sizes[True] / sizes[False]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=["pages", "writer"])
    parser.add_argument("--run", type=Path, help="a file that make_run.py made")
    given = parser.parse_args()
    missed = False
    rounds = 1 if given.quick else given.rounds
    print("| case | what | figure | bar | |\n| --- | --- | ---: | ---: | --- |")
    if given.only != "writer":
        with tempfile.TemporaryDirectory() as folder:
            matches = 5_000 if given.quick else 100_000
            path = given.run or make_run(Path(folder), matches)
            pages = measure_pages(path, min(rounds, 3))
        middle, slowest = pages[len(pages) // 2][0], pages[0][0]
        missed |= slowest > MOST_SECONDS
        met = "met" if slowest <= MOST_SECONDS else "missed"
        over = sum(each[0] > MOST_SECONDS for each in pages)
        least = max(each[1] for each in pages)
        print(f"| pages | CPU of a page, median of {len(pages)} | {middle * 1e3:.1f} ms |  |  |")
        print(f"| pages | CPU of the slowest page | {slowest * 1e3:.1f} ms | ≤ 50 | {met} |")
        print(f"| pages | the same, least of the rounds | {least * 1e3:.1f} ms |  |  |")
        print(f"| pages | pages above the bar | {over} |  |  |")
        for taken, _, query in pages[:5]:
            print(f"{taken * 1e3:8.1f} ms  {query}", file=sys.stderr)
    if given.only != "pages":
        found = measure_writer(400 if given.quick else 2_000, rounds)
        matches = 400 if given.quick else 2_000
        ratios = sorted(indexed / plain for indexed, plain, _ in found)
        for what, column in (("with", 0), ("without", 1)):
            middle = statistics.median(each[column] for each in found) / matches
            said = f"CPU of a recorded match, {what} indexes"
            print(f"| writer | {said} | {middle * 1e6:.0f} µs |  |  |")
        across = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        middle = statistics.median(ratios)
        print(f"| writer | with / without, in one round | {middle:.2f} × ({across}) |  |  |")
        print(f"| writer | size of the file, with / without | {found[0][2]:.2f} × |  |  |")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
