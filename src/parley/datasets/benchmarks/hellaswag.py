"""HellaSwag: choose the ending that continues a text; the answers of its test split are not public
(Zellers et al. 2019)."""

from __future__ import annotations

from functools import partial

from parley.datasets import Dataset
from parley.datasets.hub import load_hub_rows
from parley.rules.items.question import Question

HUB = "Rowan/hellaswag"
ROWS, EXAMPLES = (
    partial(load_hub_rows, HUB, "default", split) for split in ("validation", "train[:64]")
)

DATASETS = (Dataset("hellaswag", Question, 10042, f"hub {HUB}, validation", "MIT", ROWS, EXAMPLES),)
