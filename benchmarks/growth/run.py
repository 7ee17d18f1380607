"""What large runs cost: CPU and peak memory of commands on runs of many matches.

    python benchmarks/growth/run.py [--matches 200000] [--only run,show,report] [--runs FOLDER]

Prints one table and leaves with 1 if a bar is missed. Each command runs in a process of its own.
`run` plays bots with three calls a match, the others read a run that `make_run.py` made.
`--matches` replaces the size of every case; bars are only checked at the full size.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from make_run import make_run

COMMAND = "from parley.cli import main; main()"


@dataclass(frozen=True)
class Case:
    """A command on a large run, with its bars."""

    name: str
    task: str
    matches: int
    arguments: str  # RUN stands for the file that is read
    seconds: float | None = None  # of CPU
    megabytes: float | None = None


BOTS = ("free-rider", "altruist", "gradual", "random")
PLAY = (
    f"run public_goods {' '.join(f'-m bot/{bot}' for bot in BOTS)} --plan cycles --seats 3 "
    "--repeats BLOCKS --set rounds=1 --seed 1 --store FOLDER"
)
CASES = (
    Case("run", "public_goods", 200_000, PLAY, megabytes=300),
    Case("show", "public_goods", 200_000, "show RUN", 15, 500),
    Case("report", "translation", 100_000, "report RUN -o OUT.html --no-audit"),
)


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float  # user and system time
    megabytes: float  # peak resident memory


def measure(arguments: Sequence[str]) -> Cost:
    """Run a Parley command in a new process and wait for it."""
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os.execv(sys.executable, [sys.executable, "-c", COMMAND, *arguments])
    _, status, usage = os.wait4(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise SystemExit(f"parley {' '.join(arguments)} left with {code}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def find_or_make(folder: Path, task: str, matches: int) -> Path:
    """A run with this many matches; one in the folder is used again."""
    place = folder / f"{task}-{matches}"
    return next(place.glob(f"{task}-*.parley"), None) or make_run(place, task, matches)


def compare(case: str, what: str, figure: float, unit: str, bar: float | None) -> bool:
    """Print one row; returns whether the bar is missed."""
    missed = bar is not None and figure > bar
    said = "" if bar is None else "missed" if missed else "met"
    limit = "" if bar is None else f"≤ {bar:g} {unit}"
    print(f"| {case} | {what} | {figure:,.1f} {unit} | {limit} | {said} |", flush=True)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, help="the size of every run")
    parser.add_argument("--only", default="", metavar="CASE,…", help="these cases only")
    parser.add_argument("--runs", type=Path, help="a folder in which runs are kept")
    given = parser.parse_args()
    wanted = set(filter(None, given.only.split(",")))
    if unknown := wanted - {case.name for case in CASES}:
        parser.error(f"unknown case {min(unknown)}; cases: {', '.join(c.name for c in CASES)}")
    missed = False
    print(f"load before: {os.getloadavg()[0]:.2f}", file=sys.stderr)
    print("| case | what | figure | bar | |\n| --- | --- | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if wanted and case.name not in wanted:
                continue
            matches = given.matches or case.matches
            full = matches == case.matches
            words = case.arguments.split()
            places = {
                "BLOCKS": str(matches // len(BOTS)),
                "FOLDER": f"{folder}/played",
                "OUT.html": f"{folder}/report.html",
            }
            if "RUN" in words:
                run = find_or_make(given.runs or Path(folder), case.task, matches)
                places["RUN"] = str(run)
            cost = measure([places.get(each, each) for each in words])
            name = f"{case.name} of {matches:,} × {case.task}"
            missed |= compare(name, "CPU", cost.seconds, "s", case.seconds if full else None)
            memory = case.megabytes if full else None
            missed |= compare(name, "peak memory", cost.megabytes, "MB", memory)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
