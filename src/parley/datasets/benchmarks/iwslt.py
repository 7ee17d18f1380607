"""IWSLT 2017: translated talks, the test sets of DynaEval's three language pairs (Cettolo et al.
2017)."""

from __future__ import annotations

from functools import partial
from math import ceil

from parley.datasets import Dataset
from parley.datasets.formats.paragraphs import SEGMENTS
from parley.datasets.hub import load_hub_rows
from parley.rules.items.paragraph import Paragraph

HUB = "IWSLT/iwslt2017"
TABLES = "refs/convert/parquet"  # the Hub's Parquet copy; the dataset itself is a loading script
LICENCE = "CC-BY-NC-ND-4.0"
TEST = {"en-zh": 8549, "en-fr": 8597, "de-en": 8079}  # segments

DATASETS = tuple(
    Dataset(
        f"iwslt2017-{pair}",
        Paragraph,
        ceil(segments / SEGMENTS),
        f"hub {HUB}, test",
        LICENCE,
        partial(load_hub_rows, HUB, f"iwslt2017-{pair}", "test", revision=TABLES),
    )
    for pair, segments in TEST.items()
)
