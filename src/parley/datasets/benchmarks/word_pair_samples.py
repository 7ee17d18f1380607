"""Pairs of words in eleven lists written for this project: a general one, and one for each of ten
topics."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from itertools import zip_longest
from typing import Any

from parley.datasets import Dataset
from parley.datasets.catalogue import USUAL
from parley.datasets.files import parse_json
from parley.rules.items.word_pair import WordPair


def word_pair_rows() -> Iterator[Any]:
    """All pairs, alternating between the lists, so that the first ones cover all topics."""
    file = files("parley.datasets") / "samples" / "word_pairs.json"
    lists = parse_json(file.read_text(encoding="utf-8"), file.name)
    for found in zip_longest(
        *([(topic, *pair) for pair in pairs] for topic, pairs in lists.items())
    ):
        for topic, a, b, synonyms_a, synonyms_b in filter(None, found):
            known = {"id": f"{topic}/{a}/{b}", "topic": topic, "a": a, "b": b}
            yield {**known, "synonyms_a": synonyms_a, "synonyms_b": synonyms_b}


DATASETS = (Dataset(USUAL, WordPair, 573, "bundled", "Apache-2.0", word_pair_rows),)
