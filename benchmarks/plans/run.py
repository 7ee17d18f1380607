"""How many matches a ranking takes: the race against the sequential full round robin and sequential
cycles.

    python benchmarks/plans/run.py [--quick] [--jobs 2] [--only 4,10] [--out FILE]

Prints one table and leaves with 1 if a bar is missed. All plans are played by the same rules in the
same program, in worlds whose abilities are known, so that what a run certifies can be seen to be
right or wrong. No model is called.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from parley.runs.simulated_models import Design, SimulatedModels
from parley.runs.simulation import SimulatedRun, simulate_ranking

# Code generation and review, DynaEval table 2: the score of every programmer by reviewer, of every
# reviewer by programmer.
PROGRAMMER = [
    [0, 8.96, 8.97, 8.99],
    [8.57, 0, 8.94, 9.04],
    [8.73, 8.83, 0, 9.01],
    [8.20, 8.96, 8.78, 0],
]
REVIEWER = [
    [0, 8.83, 8.77, 8.72],
    [8.60, 0, 8.89, 8.73],
    [8.73, 8.78, 0, 8.72],
    [8.09, 8.98, 8.50, 0],
]
PLANS: dict[str, tuple[Design, bool]] = {
    "round_robin": ("round_robin", False),
    "cycles": ("cycles", False),
    "race": ("cycles", True),
}
MOST = 50_000  # blocks
WRONG = 0.05  # of the runs


def spread(count: int, *ends: tuple[float, float], **noise: Any) -> SimulatedModels:
    """Abilities evenly spread between two ends, for every role."""
    return SimulatedModels(
        np.array([np.linspace(best, worst, count) for best, worst in ends]), **noise
    )


MARKS = ((8.97, 8.65), (8.77, 8.52))  # the same range of row means
POINTS: dict[str, Any] = {"low": 0.0, "high": 100.0, "item": 8.0, "model_item": 8.0, "match": 18.0}
WORLDS = {
    "1-10, N = 4": SimulatedModels(np.array([PROGRAMMER, REVIEWER])),
    "1-10, N = 10": spread(10, *MARKS),
    "1-10, N = 50": spread(50, *MARKS),
    "0-100, N = 10": spread(10, (92.0, 62.0), (92.0, 62.0), **POINTS),
    "0-100, N = 50": spread(50, (92.0, 62.0), (92.0, 62.0), **POINTS),
}


@dataclass(frozen=True)
class Case:
    """One row for every plan: what is wanted, in how many runs, and what share of the round robin's
    matches a race may take."""

    world: str
    epsilon: float
    top: int | None
    runs: int
    at_once: int  # runs of one piece of work
    bar: float | None = None

    @property
    def aim(self) -> str:
        return "full" if self.top is None else f"top {self.top}"

    @property
    def name(self) -> str:
        return f"{self.world}, {self.aim}"


CASES = [
    Case("1-10, N = 4", 0.25, None, 200, 50),
    Case("1-10, N = 4", 0.25, 3, 200, 50),
    Case("1-10, N = 10", 0.25, None, 100, 25, 1 / 2),
    Case("1-10, N = 10", 0.25, 3, 100, 25, 1 / 5),
    Case("1-10, N = 50", 0.25, None, 20, 1, 1 / 8),
    Case("1-10, N = 50", 0.25, 3, 20, 1),
    Case("0-100, N = 10", 4.0, None, 60, 15),
    Case("0-100, N = 10", 4.0, 3, 60, 15),
    Case("0-100, N = 50", 5.0, None, 20, 1),
    Case("0-100, N = 50", 5.0, 3, 20, 1),
]
Work = tuple[int, str, int, int]  # case, plan, piece, runs


def pieces(chosen: list[int], quick: bool) -> Iterator[Work]:
    """The work, the longest pieces first, so that all processes end together."""
    for at in sorted(chosen, key=lambda at: CASES[at].at_once):
        case = CASES[at]
        runs = max(case.runs // 10, 2) if quick else case.runs
        for plan in PLANS:
            for piece, first in enumerate(range(0, runs, case.at_once)):
                yield at, plan, piece, min(case.at_once, runs - first)


def done(work: Work) -> tuple[Work, list[SimulatedRun], float]:
    """One piece of work; its chance is its own, whoever does it."""
    at, plan, piece, runs = work
    case, (design, racing), began = CASES[at], PLANS[plan], time.process_time()
    rng = np.random.default_rng([at, list(PLANS).index(plan), piece])
    trials = simulate_ranking(
        WORLDS[case.world],
        design,
        racing=racing,
        epsilon=case.epsilon,
        top=case.top,
        most=MOST,
        runs=runs,
        rng=rng,
    )
    return work, trials, time.process_time() - began


def simulated(
    works: list[Work], jobs: int
) -> tuple[dict[tuple[int, str], list[SimulatedRun]], float]:
    """All trials by case and plan, and the seconds of CPU that they took."""
    found: dict[tuple[int, str], list[SimulatedRun]] = {}
    seconds, began, told = 0.0, time.monotonic(), 0.0
    with Pool(jobs) as pool:
        for count, ((at, plan, _, _), trials, took) in enumerate(
            pool.imap_unordered(done, works), 1
        ):
            found.setdefault((at, plan), []).extend(trials)
            seconds += took
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(
                    f"{count} of {len(works)} pieces, {told - began:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return found, seconds


def table(chosen: list[int], found: dict[tuple[int, str], list[SimulatedRun]]) -> tuple[str, bool]:
    """What each plan took, in Markdown; whether all bars are met."""
    lines = [
        (
            "| scores | aim | plan | matches, mean | 90 % point | blocks, mean | of round robin "
            "| bar | wrong | runs | |"
        ),
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    good = True
    for at in chosen:
        case, base = CASES[at], fmean(trial.matches for trial in found[at, "round_robin"])
        for plan in PLANS:
            trials = found[at, plan]
            matches = sorted(trial.matches for trial in trials)
            wrong, share = sum(trial.wrong for trial in trials), fmean(matches) / base
            bar = case.bar if plan == "race" else None
            met = (
                all(trial.decided for trial in trials)
                and wrong <= WRONG * len(trials)
                and (bar is None or share <= bar)
            )
            good = good and met
            cells = [
                case.world,
                case.aim,
                plan,
                f"{fmean(matches):,.0f}",
                f"{matches[math.ceil(0.9 * len(matches)) - 1]:,}",
            ]
            cells += [
                f"{fmean(trial.blocks for trial in trials):,.0f}",
                f"{share:.3f}",
                "" if bar is None else f"≤ {bar:.3g}",
            ]
            cells += [str(wrong), str(len(trials)), "met" if met else "**missed**"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines), good


def read_options(description: str) -> argparse.Namespace:
    """The options of this benchmark and of `benchmarks/cost`. `chosen` are the numbers of the cases
    to simulate."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tenth of the runs: to see that it works, too few to judge by",
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--only", help="these numbers of models, by comma: 4, 10, 50")
    parser.add_argument(
        "--out", type=Path, help="append every simulated run to this file, as JSON lines"
    )
    given = parser.parse_args()
    counts = {int(count) for count in given.only.split(",")} if given.only else {4, 10, 50}
    given.chosen = [at for at, case in enumerate(CASES) if WORLDS[case.world].models in counts]
    if not given.chosen or given.jobs < 1:
        parser.error("--only must name some of 4, 10 and 50, and --jobs must be at least 1")
    return given


def main() -> int:
    began = time.monotonic()
    given = read_options("How many matches a ranking takes, by plan.")
    found, seconds = simulated(list(pieces(given.chosen, given.quick)), given.jobs)
    if given.out:
        with given.out.open("a") as file:
            for (at, plan), trials in sorted(found.items()):
                file.writelines(
                    json.dumps({"case": CASES[at].name, "plan": plan, **trial._asdict()}) + "\n"
                    for trial in trials
                )
    text, good = table(given.chosen, found)
    print(text)
    print(
        f"\n{time.monotonic() - began:.0f} s, {seconds:.0f} s of CPU, {given.jobs} jobs, Python "
        f"{sys.version.split()[0]}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
