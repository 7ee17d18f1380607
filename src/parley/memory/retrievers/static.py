"""`static`: the mean of the word vectors of a text's tokens (WordLlama). Very fast; it ignores the
order of words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parley.downloads import Packaged
from parley.memory.byte_pairs import BytePairs
from parley.memory.dense import DenseRetriever
from parley.memory.packaged_encoder import PackagedEncoder
from parley.memory.retrievers._registry import refuse_name_after
from parley.memory.safetensors import read_tensors

WEIGHTS = Packaged(
    path="weights/l2_supercat_256.safetensors",
    package="wordllama",
    version="0.4.0.post1",
    sha256="64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    size=19_155_170,
    variable="PARLEY_STATIC",
)
TOKENIZER = Packaged(
    path="tokenizers/l2_supercat_tokenizer_config.json",
    package="wordllama",
    version="0.4.0.post1",
    sha256="93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
    size=19_155_170,
    variable="PARLEY_STATIC_TOKENIZER",
)


class WordVectors(PackagedEncoder[tuple[BytePairs, NDArray[Any]]]):
    """The encoder."""

    width = 256
    weights, tokenizer = WEIGHTS, TOKENIZER

    def load_files(self, weights: Path, tokenizer: Path) -> tuple[BytePairs, NDArray[Any]]:
        return BytePairs(tokenizer), read_tensors(weights)["embedding.weight"]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        words, vectors = self.loaded
        found = np.zeros((len(texts), self.width), np.float32)
        for row, text in enumerate(texts):
            if tokens := words.split(text):  # a text without any stays zero
                found[row] = vectors[tokens].mean(axis=0, dtype=np.float32)
                found[row] /= np.sqrt(np.square(found[row]).sum())
        return found


def make(rest: str) -> DenseRetriever:
    refuse_name_after("static", rest)
    return DenseRetriever("static", f"1 {WEIGHTS.sha256[:12]}", WordVectors())
