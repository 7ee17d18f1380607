"""Paragraphs in four languages written for this project, bundled for a first try. They are samples,
not a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from parley.datasets import Dataset
from parley.datasets.catalogue import USUAL
from parley.datasets.files import parse_json
from parley.rules.items.paragraph import Paragraph

PAIRS = ("en-zh", "en-fr", "de-en")  # those of DynaEval


def paragraph_rows() -> Iterator[Any]:
    file = files("parley.datasets") / "samples" / "paragraphs.json"
    texts = parse_json(file.read_text(encoding="utf-8"), file.name)["texts"]
    for pair in PAIRS:
        source, target = pair.split("-")
        for text in texts:
            known = {"id": f"{pair}/{text['document']}", "document": text["document"]}
            languages = {"source_language": source, "target_language": target}
            yield {**known, **languages, "source": text[source], "reference": text[target]}


DATASETS = (Dataset(USUAL, Paragraph, 36, "bundled", "Apache-2.0", paragraph_rows),)
