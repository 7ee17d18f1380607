"""What Parley adds to a call, side by side with a bare client and, if wanted, with inspect-ai.

    python benchmarks/overhead/run.py [--quick] [--only http0,inproc] [--against CHECKOUT]

Prints one table and leaves with 1 if a bar is missed. Every measurement is a process of its own;
the stacks of a case follow each other in an order that rotates from round to round, and ratios are
taken within a round: what else the machine does then weighs on both sides. Needs Parley installed
in the Python that runs this, and a C compiler as `cc`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from workload import SAID

HERE = Path(__file__).resolve().parent
BUILD, VENVS = HERE.parent / "build", HERE.parent / ".venvs"
# stacks with a venv of their own, and what is put into it
NEEDS = {"inspect": ["inspect-ai", "openai"]}
TIMEOUT = 600  # seconds a measurement may take
QUIET = 1.0  # the load above which a measurement is refused


@dataclass(frozen=True)
class Case:
    """One measurement of one stack."""

    stack: str
    matches: int = 1000
    calls: int = 6
    latency: int | None = 0  # milliseconds; None: no HTTP at all
    concurrency: int = 200
    hold: bool = False
    before: bool = False  # measures the other checkout


CASES = {  # stacks that are compared follow each other
    "http0 bare": Case("bare"),
    "http0": Case("parley"),
    "http0 before": Case("parley", before=True),
    "http0 inspect": Case("inspect", matches=200),
    "http0 long bare": Case("bare", matches=300, calls=40),
    "http0 long": Case("parley", matches=300, calls=40),
    "http50 bare": Case("bare", latency=50),
    "http50": Case("parley", latency=50),
    "http50 before": Case("parley", latency=50, before=True),
    "inproc": Case("parley", latency=None),
    "inproc before": Case("parley", latency=None, before=True),
    "inproc long": Case("parley", matches=300, calls=40, latency=None),
    "flight": Case("parley", matches=10_000, latency=None, concurrency=10_000, hold=True),
}
Figures = dict[str, dict[str, Any]]  # of one round, by case


@dataclass(frozen=True)
class Bar:
    """A row of the table: a number that a round yields, and what it must not exceed or fall
    below."""

    name: str
    what: str
    cases: tuple[str, ...]
    value: Callable[[Figures], float]
    unit: str = ""
    most: float | None = None
    least: float | None = None

    def met(self, value: float) -> bool | None:
        if self.most is None and self.least is None:
            return None
        return (self.most is None or value <= self.most) and (
            self.least is None or value >= self.least
        )


def ratio(figure: str, case: str, other: str) -> Callable[[Figures], float]:
    return lambda found: found[case][figure] / found[other][figure]


def figure(name: str, case: str) -> Callable[[Figures], float]:
    return lambda found: found[case][name]


def against(name: str, what: str, measure: str) -> Bar:
    """A row that compares this checkout with the other one."""
    cases = name, f"{name} before"
    return Bar(name, what, cases, ratio(measure, *cases), "×")


CPU = "CPU of a call"
BARS = [
    Bar("http0", f"{CPU}, bare client", ("http0 bare",), figure("cpu_ms", "http0 bare"), "ms"),
    Bar("http0", f"{CPU}, Parley", ("http0",), figure("cpu_ms", "http0"), "ms"),
    Bar(
        "http0",
        f"{CPU}, Parley / bare",
        ("http0", "http0 bare"),
        ratio("cpu_ms", "http0", "http0 bare"),
        "×",
        2.5,
    ),
    against("http0", f"{CPU}, Parley / before", "cpu_ms"),
    Bar("inproc", f"{CPU}, Parley", ("inproc",), figure("cpu_ms", "inproc"), "ms", 0.15),
    against("inproc", f"{CPU}, Parley / before", "cpu_ms"),
    Bar(
        "http50",
        "calls a second, bare client",
        ("http50 bare",),
        figure("calls_s", "http50 bare"),
        "/s",
    ),
    Bar("http50", "calls a second, Parley", ("http50",), figure("calls_s", "http50"), "/s"),
    Bar(
        "http50",
        "calls a second, Parley / bare",
        ("http50", "http50 bare"),
        ratio("calls_s", "http50", "http50 bare"),
        "×",
        least=0.85,
    ),
    against("http50", "calls a second, Parley / before", "calls_s"),
    Bar(
        "long",
        f"{CPU} in process, 40 / 6 a match",
        ("inproc long", "inproc"),
        ratio("cpu_ms", "inproc long", "inproc"),
        "×",
        1.5,
    ),
    Bar(
        "long",
        f"{CPU} over HTTP, 40 / 6 a match",
        ("http0 long", "http0"),
        ratio("cpu_ms", "http0 long", "http0"),
        "×",
        1.5,
    ),
    Bar(
        "long",
        "the same, bare client",
        ("http0 long bare", "http0 bare"),
        ratio("cpu_ms", "http0 long bare", "http0 bare"),
        "×",
    ),
    Bar(
        "long",
        f"{CPU} over HTTP at 40, Parley / bare",
        ("http0 long", "http0 long bare"),
        ratio("cpu_ms", "http0 long", "http0 long bare"),
        "×",
    ),
    Bar("flight", "matches in flight at once", ("flight",), figure("held", "flight"), least=10_000),
    Bar("flight", "peak memory", ("flight",), figure("rss_mb", "flight"), "MB", 600),
    Bar(
        "inspect", f"{CPU}, inspect-ai", ("http0 inspect",), figure("cpu_ms", "http0 inspect"), "ms"
    ),
    Bar(
        "inspect",
        f"{CPU}, inspect-ai / Parley",
        ("http0 inspect", "http0"),
        ratio("cpu_ms", "http0 inspect", "http0"),
        "×",
        least=25,
    ),
]


class Server:
    """The endpoint that answers at once, or after a fixed time."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def ask(self, path: str) -> dict[str, int]:
        with urlopen(self.address + path, timeout=10) as answer:
            return json.load(answer)


@contextmanager
def served(said: str = SAID) -> Iterator[Server]:
    """An endpoint whose replies are these words."""
    BUILD.mkdir(exist_ok=True)
    program = BUILD / "server"
    subprocess.run(
        ["cc", "-O2", "-Wall", f"-DSAID={json.dumps(said)}", "-o", program, HERE / "server.c"],
        check=True,
    )
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(int(process.stdout.readline()))
        finally:
            process.terminate()


def interpreter(stack: str) -> Path:
    """The Python of a stack; a venv of its own is made the first time."""
    if stack not in NEEDS:
        return Path(sys.executable)
    python = VENVS / stack / "bin" / "python"
    mark = VENVS / stack / ".filled"
    if not mark.exists():
        print(f"making {VENVS.name}/{stack} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", VENVS / stack], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *NEEDS[stack]],
            check=True,
        )
        mark.touch()
    return python


def measured(name: str, case: Case, server: Server, against: Path | None) -> dict[str, Any]:
    """One case in a new process; what it printed, and what the server counted meanwhile."""
    source = against / "src" if case.before and against else HERE.parents[1] / "src"
    command = [
        interpreter(case.stack),
        HERE / f"with_{case.stack}.py",
        "--matches",
        str(case.matches),
    ]
    command += ["--calls", str(case.calls), "--concurrency", str(case.concurrency)]
    if case.latency is not None:
        command += ["--url", f"{server.address}/v1"]
    if case.hold:
        command += ["--hold"]
    server.ask(f"/begin/{case.latency or 0}")
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        done = subprocess.run(
            [*command, "--folder", folder],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env={**os.environ, "PYTHONPATH": str(source)},
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "source" in found and not Path(found["source"]).is_relative_to(source):
        raise SystemExit(f"{name} measured {found['source']} instead of {source}")
    if case.latency is not None:
        counts = server.ask("/counts")
        if counts["requests"] != found["calls"]:
            raise SystemExit(
                f"{name}: {found['calls']} calls were claimed, the server saw "
                f"{counts['requests']} requests"
            )
        found["bytes"] = counts["bytes"] / found["calls"]
    return found


def refuse_unequal(round: Figures) -> None:
    """Parley and the bare client must have sent the same amount."""
    for name in ("http0", "http50", "http0 long"):
        if name in round and (other := f"{name} bare") in round:
            sent, wanted = round[name]["bytes"], round[other]["bytes"]
            if abs(sent / wanted - 1) > 0.01:
                raise SystemExit(
                    f"{name}: {sent:.0f} bytes a request against {wanted:.0f} of the bare client"
                )


def play(chosen: dict[str, Case], rounds: int, against: Path | None) -> list[Figures]:
    """Measure all cases `rounds` times; the stacks of a case stay together, and each round begins
    with another one."""
    played: list[Figures] = []
    groups: dict[str, list[str]] = {}
    for name, case in chosen.items():
        group = name.removesuffix(f" {case.stack}").removesuffix(" before")
        groups.setdefault(group, []).append(name)
    with served() as server:
        for number in range(rounds):
            found: Figures = {}
            for name in (name for group in groups.values() for name in rotated(group, number)):
                found[name] = measured(name, chosen[name], server, against)
                shown = ", ".join(
                    f"{key} {value:.4g}"
                    for key, value in found[name].items()
                    if isinstance(value, float)
                )
                print(f"round {number + 1}, {name}: {shown}", file=sys.stderr, flush=True)
            refuse_unequal(found)
            played.append(found)
    return played


def rotated(names: list[str], by: int) -> list[str]:
    shift = by % len(names)
    return names[shift:] + names[:shift]


def table(bars: list[Bar], played: list[Figures]) -> tuple[str, bool]:
    """The medians against their bars, in Markdown; whether all are met."""
    lines = ["| case | what | median | range | bar | |", "| --- | --- | ---: | ---: | ---: | --- |"]
    good = True
    for bar in bars:
        values = [bar.value(found) for found in played]
        middle, met = median(values), bar.met(median(values))
        good = good and met is not False
        limit = (
            f"≤ {bar.most:g}"
            if bar.most is not None
            else f"≥ {bar.least:g}"
            if bar.least is not None
            else ""
        )
        verdict = {None: "", True: "met", False: "**missed**"}[met]
        spread = f"{number(min(values))} to {number(max(values))}" if len(values) > 1 else ""
        lines.append(
            f"| {bar.name} | {bar.what} | {number(middle)} {bar.unit} | {spread} | "
            f"{limit} | {verdict} |"
        )
    return "\n".join(lines), good


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="What Parley adds to a call, measured side by side."
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=9,
        help="how often everything is measured; medians are shown (9)",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help="measure another checkout of Parley too, in the same rounds",
    )
    parser.add_argument(
        "--busy", action="store_true", help=f"measure although the load is above {QUIET:g}"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round, a fifth of the matches: to see that it works",
    )
    parser.add_argument("--only", help="these bars, by comma: http0, inproc, http50, long, flight")
    parser.add_argument(
        "--with",
        dest="also",
        choices=[*NEEDS],
        help="measure this stack too, in a venv made for it",
    )
    parser.add_argument(
        "--out", type=Path, help="append every measurement to this file, as JSON lines"
    )
    return parser.parse_args()


def main() -> int:
    given = options()
    wanted = set(given.only.split(",")) if given.only else {bar.name for bar in BARS} - {*NEEDS}
    if unknown := wanted - {bar.name for bar in BARS}:
        raise SystemExit(f"there is no bar {', '.join(sorted(unknown))}")
    wanted |= {given.also} if given.also else set()
    if given.against:
        given.against = given.against.resolve()
        if not (given.against / "src" / "parley").is_dir():
            raise SystemExit(f"--against needs a checkout of Parley: {given.against} is none")
    bars = [
        bar
        for bar in BARS
        if bar.name in wanted
        and (given.against or not any(CASES[case].before for case in bar.cases))
    ]
    load = os.getloadavg()[0]
    print(f"load before the start: {load:.2f}", file=sys.stderr, flush=True)
    if load > QUIET and not given.busy and not given.quick:
        raise SystemExit(
            f"the load must be at most {QUIET:g} before the start, not {load:.2f}: wait until the "
            "machine is quiet, or measure all the same with --busy"
        )
    needed = {name for bar in bars for name in bar.cases}
    chosen = {name: case for name, case in CASES.items() if name in needed}
    if given.quick:
        chosen = {name: smaller(case) for name, case in chosen.items()}
    played = play(chosen, 1 if given.quick else given.rounds, given.against)
    if given.out:
        with given.out.open("a") as file:
            file.writelines(
                json.dumps({"case": name, **found}) + "\n"
                for round in played
                for name, found in round.items()
            )
    text, good = table(bars, played)
    print(text)
    versions = {
        f", {NEEDS[CASES[name].stack][0]} {found['version']}"
        for name, found in played[0].items()
        if "version" in found
    }
    print(
        f"\n{os.cpu_count()} cores, load before the start {load:.2f}, Python "
        f"{sys.version.split()[0]}, {len(played)} round{'s' * (len(played) > 1)}{''.join(versions)}"
    )
    return 0 if good else 1


def smaller(case: Case) -> Case:
    return case if case.hold else replace(case, matches=case.matches // 5)


if __name__ == "__main__":
    sys.exit(main())
