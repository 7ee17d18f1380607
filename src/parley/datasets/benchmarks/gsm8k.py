"""GSM8K: grade-school maths word problems with worked solutions (Cobbe et al. 2021)."""

from __future__ import annotations

from functools import partial

from parley.datasets import Dataset
from parley.datasets.hub import load_hub_rows
from parley.rules.items.question import Question

HUB = "openai/gsm8k"
ROWS, EXAMPLES = (partial(load_hub_rows, HUB, "main", split) for split in ("test", "train[:64]"))

DATASETS = (Dataset("gsm8k", Question, 1319, f"hub {HUB}, test", "MIT", ROWS, EXAMPLES, shots=8),)
