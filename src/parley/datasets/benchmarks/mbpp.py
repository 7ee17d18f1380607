"""MBPP: crowd-sourced beginners' problems, each with three tests (Austin et al. 2021)."""

from __future__ import annotations

from functools import partial

from parley.datasets import Dataset
from parley.datasets.hub import load_hub_rows
from parley.rules.items.problem import Problem

HUB = "google-research-datasets/mbpp"
ALL = ("prompt", "test", "validation", "train")  # in the order of their ids
LICENCE = "CC-BY-4.0"

DATASETS = (
    Dataset(
        "mbpp",
        Problem,
        500,
        f"hub {HUB}, test",
        LICENCE,
        partial(load_hub_rows, HUB, "full", "test"),
    ),
    Dataset(
        "mbpp-all",
        Problem,
        974,
        f"hub {HUB}, all",
        LICENCE,
        partial(load_hub_rows, HUB, "full", *ALL),
    ),
    Dataset(
        "mbpp-sanitised",
        Problem,
        427,
        f"hub {HUB}, sanitised",
        LICENCE,
        partial(load_hub_rows, HUB, "sanitized", *ALL),
    ),
)
