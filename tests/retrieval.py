"""Retrievers in tests: the texts that they are held to, and a cache of their own."""

import json
from pathlib import Path

from parley import downloads
from parley.memory import Search
from parley.memory.retrievers import minilm

DATA = Path(__file__).parent / "data" / "retrieval"
TEXTS = json.loads((DATA / "texts.json").read_text(encoding="utf-8"))


def own_cache(folder):
    """The environment in which weights are found where they are, and nothing is written beside
    them."""
    files = minilm.WEIGHTS, minilm.TOKENIZER
    found = zip(files, downloads.obtain_files(files), strict=True)
    return {"PARLEY_CACHE": str(folder)} | {each.variable: str(file) for each, file in found}


def searching(queries, stored, k, **more):
    """A search in which equal texts are the same item."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys([*stored, *queries]))}
    return Search(
        queries,
        stored,
        k,
        [numbers[text] for text in queries],
        [numbers[text] for text in stored],
        **more,
    )
