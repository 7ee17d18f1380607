"""ARC: science questions from school exams, in an easy and a challenge set (Clark et al. 2018)."""

from __future__ import annotations

from functools import partial

from parley.datasets import Dataset
from parley.datasets.hub import load_hub_rows
from parley.rules.items.question import Question

HUB = "allenai/ai2_arc"
TEST = {"ARC-Easy": 2376, "ARC-Challenge": 1172}

DATASETS = tuple(
    Dataset(
        part.lower(),
        Question,
        count,
        f"hub {HUB}, test",
        "CC-BY-SA-4.0",
        partial(load_hub_rows, HUB, part, "test"),
        partial(load_hub_rows, HUB, part, "train[:64]"),
    )
    for part, count in TEST.items()
)
