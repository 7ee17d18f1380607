"""What a judged program costs: a warm sandbox against a cold one for each program.

    python benchmarks/sandbox/run.py [--quick] [--programs 1000] [--cold 100] [--out FILE]

Prints one table and leaves with 1 if a bar is missed: warm at least 4 times as many programs a
second as cold in the same run, at most 12 ms of CPU a program. Small programs in the manner of
MBPP, a third of them wrong; every verdict is checked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from problems import PROBLEMS

from parley.rules.python_tests import parse_tests
from parley.sandbox.executor import Sandbox

TIMES = 4.0  # warm against cold
MOST = 12.0  # ms of CPU a program


def cpu() -> float:
    """Seconds of this process and of everything below it that has ended: each is waited for by what
    started it."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


async def judged(sandbox: Sandbox, count: int, jobs: int) -> int:
    """Judge `count` programs, `jobs` at a time. Returns how many verdicts were wrong."""
    numbers = iter(range(count))

    async def work() -> int:
        wrong = 0
        for number in numbers:
            problem, right = PROBLEMS[number % len(PROBLEMS)], number % 3 != 1
            code = problem.right if right else problem.wrong
            names = parse_tests(problem.tests, "", "").names
            program = {"code": code, "tests": problem.tests, "names": names}
            wrong += (await sandbox.execute(program))["passed"] is not right
        return wrong

    return sum(await asyncio.gather(*(work() for _ in range(jobs))))


def measured(warm: bool, count: int, jobs: int) -> dict[str, Any]:
    """One measurement: programs a second once the sandbox stands, and all CPU from before it starts
    until it is gone."""
    before = cpu()
    sandbox = Sandbox(warm=warm, jobs=jobs)
    kind = sandbox.open().name
    began = time.monotonic()
    wrong = asyncio.run(judged(sandbox, count, jobs))
    seconds = time.monotonic() - began
    sandbox.close()
    used = cpu() - before
    return {
        "warm": warm,
        "jobs": jobs,
        "programs": count,
        "kind": kind,
        "wrong": wrong,
        "per_s": count / seconds,
        "cpu_ms": 1000 * used / count,
    }


def in_new_process(warm: bool, count: int, jobs: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--only", json.dumps([warm, count, jobs])]
    return dict(json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout))


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="a tenth of the programs")
    options.add_argument("--programs", type=int, default=1000)
    options.add_argument("--cold", type=int, default=100, help="programs that are run cold")
    options.add_argument("--out", type=Path, help="append every measurement as a JSON line")
    options.add_argument("--only", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.only:
        print(json.dumps(measured(*json.loads(given.only))))
        return 0
    scale = 10 if given.quick else 1
    found = [
        in_new_process(warm, count // scale, jobs)
        for jobs in (1, 2)
        for warm, count in ((True, given.programs), (False, given.cold))
    ]
    if given.out:
        with given.out.open("a") as file:
            file.writelines(json.dumps(each) + "\n" for each in found)
    good = not any(each["wrong"] for each in found)
    print("| sandbox | at a time | programs | programs/s | CPU ms a program | warm / cold | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for warm, cold in (found[:2], found[2:]):
        times = warm["per_s"] / cold["per_s"]
        met = times >= TIMES and warm["cpu_ms"] <= MOST
        good = good and met
        for each, ratio, words in (
            (cold, "", ""),
            (warm, f"{times:.1f} ×", "met" if met else "MISSED"),
        ):
            name, figures = (
                "warm" if each["warm"] else "cold",
                f"{each['per_s']:.1f} | {each['cpu_ms']:.1f}",
            )
            print(
                f"| {name} | {each['jobs']} | {each['programs']:,} | {figures} | "
                f"{ratio} | {words} |"
            )
    print(
        f"\nbars: warm / cold ≥ {TIMES:g}, CPU ≤ {MOST:g} ms; "
        f"{sum(each['wrong'] for each in found)} wrong verdicts"
    )
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python "
        f"{sys.version.split()[0]}, {found[0]['kind']}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
