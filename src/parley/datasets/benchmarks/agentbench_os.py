"""AgentBench's command-line tasks (Liu et al. 2023): os-std and its development set, from a clone
of the repository; and the edition in inspect-evals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from parley.datasets import Dataset
from parley.datasets.files import LocatedRow, read_file_rows, read_rows
from parley.datasets.formats.os_entries import with_files
from parley.errors import UsageError
from parley.rules.items.os_entry import OSEntry

REPOSITORY = "THUDM/AgentBench"
VARIABLE = "PARLEY_AGENTBENCH"  # path of the clone; default: ./AgentBench
WITHIN = "data/os_interaction/data"
PACKAGE, EDITION = "inspect_evals", "agent_bench/data/agent_bench_os_test.json"


def repository_rows(name: str) -> Iterator[Any]:
    """The rows of the data folder in a clone of the repository, or of a file there."""
    place = Path(os.environ.get(VARIABLE) or "AgentBench").expanduser() / WITHIN / name
    if not place.exists():
        raise UsageError(
            f"{place} does not exist: clone the repository (git clone "
            f"https://github.com/{REPOSITORY}) and set the environment variable {VARIABLE} to "
            "its folder, or name one of its folders with --dataset PATH"
        )
    return map(complete_row, read_rows(place))


def package_rows() -> Iterator[Any]:
    """The rows of the edition in the package inspect-evals, which is not imported."""
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise UsageError(
            "this dataset needs the package inspect-evals: pip install --no-deps inspect-evals"
        )
    return map(complete_row, read_file_rows(Path(found.submodule_search_locations[0]) / EDITION))


def complete_row(found: LocatedRow) -> dict[str, Any]:
    """A row with its scripts and an id."""
    return {"id": found.id or f"dev-001-{found.file}-{found.number - 1:05d}", **with_files(found)}


DATASETS = (
    Dataset(
        "agentbench-os",
        OSEntry,
        144,
        f"clone of {REPOSITORY}, os-std",
        "Apache-2.0",
        partial(repository_rows, ""),
    ),
    Dataset(
        "agentbench-os-dev",
        OSEntry,
        26,
        f"clone of {REPOSITORY}, os-dev",
        "Apache-2.0",
        partial(repository_rows, "dev.json"),
    ),
    Dataset(
        "agentbench-os-inspect",
        OSEntry,
        119,
        "package inspect-evals, test",
        "MIT",
        package_rows,
    ),
)
