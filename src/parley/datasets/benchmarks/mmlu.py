"""MMLU: questions on 57 subjects, with five examples of each (Hendrycks et al. 2021)."""

from __future__ import annotations

from functools import partial

from parley.datasets import Dataset
from parley.datasets.hub import load_hub_rows
from parley.rules.items.question import Question

HUB = "cais/mmlu"
ROWS, EXAMPLES = (partial(load_hub_rows, HUB, "all", split) for split in ("test", "dev"))

DATASETS = (Dataset("mmlu", Question, 14042, f"hub {HUB}, test", "MIT", ROWS, EXAMPLES),)
