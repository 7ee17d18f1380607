"""What it costs to play, resume and audit large runs: CPU and peak memory of `run`, `resume` and
`audit`.

    python benchmarks/growth/play.py [--matches 1000000] [--only run,resume,audit]

Plays runs of bots with three calls a match, so that their digests are right. `resume` continues a
run that stopped after half of its calls. Memory is compared with that of a small run. Prints one
table and leaves with 1 if a bar is missed; bars are only checked at the full size.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from run import Cost, compare, measure

SMALL, FULL = 20_000, 1_000_000  # matches
CASES = ("run", "resume", "audit")
BARS = {"run": 300.0, "resume": 300.0}  # MB more than the small run
AUDIT_BAR = 400.0  # MB
CALLS = 3  # of a match
STOPPED = 4  # how `parley run` leaves at a limit
BOTS = ("free-rider", "altruist", "gradual", "random")


def play(store: Path, matches: int, name: str, most_calls: int | None = None) -> Cost:
    """Play a run, at most with some calls."""
    models = [part for bot in BOTS for part in ("-m", f"{bot}=bot/{bot}")]
    plan = ["--plan", "cycles", "--seats", "3", "--repeats", str(matches // len(BOTS))]
    limit = [] if most_calls is None else ["--max-calls", str(most_calls)]
    place = ["--set", "rounds=1", "--seed", "1", "--name", name, "--store", str(store)]
    codes = (0,) if most_calls is None else (STOPPED,)
    return measure(["run", "public_goods", *models, *plan, *place, *limit], codes)


def measure_case(case: str, folder: Path, matches: int) -> Cost:
    """Measure one command on a run of this size. `audit` reads the run of `run`."""
    store, name = folder / f"{case}-{matches}", f"{case}-{matches}"
    if case == "run":
        return play(store, matches, name)
    if case == "resume":
        calls = CALLS * matches
        play(store, matches, name, most_calls=calls // 2)
        return measure(["resume", name, "--store", str(store), "--max-calls", str(calls)])
    played = folder / f"run-{matches}"
    if not played.exists():
        play(played, matches, played.name)
    return measure(["audit", played.name, "--store", str(played)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=FULL, help="the size of the large runs")
    parser.add_argument("--small", type=int, default=SMALL, help="the size of the small runs")
    parser.add_argument("--only", default=",".join(CASES), metavar="CASE,…")
    given = parser.parse_args()
    wanted = given.only.split(",")
    if unknown := set(wanted) - set(CASES):
        parser.error(f"unknown case {min(unknown)}; cases: {', '.join(CASES)}")
    full = (given.matches, given.small) == (FULL, SMALL)
    missed = False
    print(f"load before: {os.getloadavg()[0]:.2f}", file=sys.stderr)
    print("| case | what | figure | bar | |\n| --- | --- | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for case in (case for case in CASES if case in wanted):
            costs = []
            for matches in (given.small, given.matches):
                cost = measure_case(case, Path(folder), matches)
                costs.append(cost)
                name = f"{case} of {matches:,}"
                compare(name, "CPU", cost.seconds, "s", None)
                bar = AUDIT_BAR if full and case == "audit" and matches == FULL else None
                missed |= compare(name, "peak memory", cost.megabytes, "MB", bar)
            more = costs[1].megabytes - costs[0].megabytes
            bar = BARS.get(case) if full else None
            missed |= compare(case, "more memory than the small run", more, "MB", bar)
            a_match = 1e6 * more / (given.matches - given.small)
            compare(case, "memory of one more match", a_match, "bytes", None)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
