"""Questions written for this project, bundled for a first try. They are samples, not a
benchmark."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from typing import Any

from parley.datasets import Dataset
from parley.datasets.catalogue import USUAL
from parley.datasets.files import parse_json
from parley.rules.items.question import Question


def question_rows(name: str, part: str) -> list[Any]:
    file = files("parley.datasets") / "samples" / name
    found: list[Any] = parse_json(file.read_text(encoding="utf-8"), file.name)[part]
    return found


DATASETS = tuple(
    Dataset(
        name,
        Question,
        count,
        "bundled",
        "Apache-2.0",
        partial(question_rows, file, "questions"),
        partial(question_rows, file, "examples"),
    )
    for name, file, count in (
        (USUAL, "questions.json", 64),
        (f"{USUAL}-zh", "questions_zh.json", 30),
        (f"{USUAL}-maths", "maths.json", 65),
    )
)
