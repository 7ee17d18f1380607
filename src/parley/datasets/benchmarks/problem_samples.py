"""Programming problems written for this project, bundled for a first try. They are samples, not a
benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from parley.datasets import Dataset
from parley.datasets.catalogue import USUAL
from parley.datasets.files import parse_json
from parley.rules.items.problem import Problem


def problem_rows() -> Iterator[Any]:
    file = files("parley.datasets") / "samples" / "problems.json"
    yield from parse_json(file.read_text(encoding="utf-8"), file.name)


DATASETS = (Dataset(USUAL, Problem, 46, "bundled", "Apache-2.0", problem_rows),)
