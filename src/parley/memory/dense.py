"""Retrievers that compare embeddings: each text is embedded once, and the nearest vectors by L2
distance are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parley.activity import report_activity
from parley.memory import Neighbour, Search
from parley.memory.embedding_cache import EmbeddingCache, Vector
from parley.memory.nearest import find_nearest

SAVE_EVERY = 1000  # texts, after which new embeddings are written to disk
BATCH = 20  # texts that are embedded together; progress is reported after each batch


class Encoder(Protocol):
    """Turns texts into vectors. The vector of a text does not depend on the other texts."""

    @property
    def width(self) -> int: ...

    def prepare(self) -> None:
        """Download and load what it needs; raises an error that says what the user can do."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A vector for each text."""


class DenseRetriever:
    """Finds the nearest embeddings. Embeddings are cached on disk."""

    def __init__(self, name: str, version: str, encoder: Encoder) -> None:
        self.name, self.version, self.encoder = name, version, encoder
        self._cache = EmbeddingCache(name, version)
        self._known: dict[bytes, Vector] = {}

    @property
    def notice(self) -> str:
        """What the user should know about the searches so far; empty if nothing."""
        return self._cache.notice

    def prepare(self) -> None:
        self.encoder.prepare()

    def search(self, wanted: Search) -> list[list[Neighbour]]:
        texts = list(dict.fromkeys([*wanted.stored, *wanted.queries]))
        numbers = {text: number for number, text in enumerate(texts)}
        stored = [numbers[text] for text in wanted.stored]
        queries = [numbers[text] for text in wanted.queries]
        if not stored or not queries:
            return [[] for _ in queries]
        vectors = self.embed(texts)
        return find_nearest(vectors[queries], vectors[stored], wanted.k, wanted.barred)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vector of each text, from memory, from disk or computed now."""
        keys = [self._cache.make_key(text) for text in texts]
        if missing := set(keys) - self._known.keys():
            self._known |= self._cache.load(missing, self.encoder.width)
        todo = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        new: dict[bytes, Vector] = {}
        try:
            for done, (some, vectors) in enumerate(self._embed_in_batches(todo)):
                new |= zip(some, vectors, strict=True)
                self._known |= zip(some, vectors, strict=True)
                report_activity(
                    f"{self.name}: {min((done + 1) * BATCH, len(todo)):,} of {len(todo):,} "
                    "texts embedded"
                )
                if len(new) >= SAVE_EVERY:
                    self._cache.keep(new)
                    new = {}
        finally:
            self._cache.keep(new)
            if todo:
                report_activity("")
        return np.array([self._known[key] for key in keys], np.float32)

    def _embed_in_batches(
        self, todo: dict[bytes, str]
    ) -> Iterator[tuple[list[bytes], NDArray[np.float32]]]:
        keys = sorted(todo, key=lambda key: len(todo[key]))
        for start in range(0, len(keys), BATCH):
            some = keys[start : start + BATCH]
            yield some, self.encoder.embed([todo[key] for key in some])
