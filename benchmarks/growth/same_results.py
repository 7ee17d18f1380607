"""Compare the results of runs with those of an earlier checkout.

    git worktree add /tmp/before COMMIT
    python benchmarks/growth/same_results.py --before /tmp/before/src RUN.parley…

Computes all parts with both versions, each in a process of its own, and compares the JSON. Leaves
with 1 if a number differs by more than 1e-9 (relative above 1), or anything else differs. Fields
that only this version has are listed, and do not count as differences.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

MOST = 1e-9
COMMAND = "from parley.cli import main; main()"


def compute_results(run: str, source: str | None) -> Any:
    """The JSON that `parley show --json` prints."""
    place = {} if source is None else {"PYTHONPATH": source}
    arguments = [sys.executable, "-c", COMMAND, "show", run, "--json"]
    done = subprocess.run(
        arguments, env={**os.environ, **place}, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def list_differences(before: Any, after: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Where two results differ, and by how much; infinitely if they are not both numbers, and NaN
    if only `after` has a field."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            if key in before and key in after:
                yield from list_differences(before[key], after[key], f"{place}.{key}")
            else:
                yield f"{place}.{key}", float("inf" if key in before else "nan")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for n, pair in enumerate(zip(before, after, strict=True)):
            yield from list_differences(*pair, f"{place}[{n}]")
    elif type(before) in (int, float) and type(after) in (int, float):
        yield place, abs(before - after) / max(1.0, abs(before))
    elif before != after:
        yield place, float("inf")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--before", required=True, metavar="SRC", help="the earlier src folder")
    given = parser.parse_args()
    failed = False
    for run in given.runs:
        pair = compute_results(run, given.before), compute_results(run, None)
        every = list(list_differences(*pair))
        new = [place for place, size in every if math.isnan(size)]
        found = [each for each in every if not math.isnan(each[1])]
        wrong = [each for each in found if each[1] > MOST]
        failed |= bool(wrong)
        largest = max((size for _, size in found), default=0.0)
        print(f"{run}: {len(found):,} numbers, largest difference {largest:.1e}", *wrong[:5])
        print("only in this version:", ", ".join(new) or "nothing")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
