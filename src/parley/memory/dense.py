"""Retrievers that compare embeddings: texts become vectors, once for each text, and the nearest by
L2 are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parley import downloads
from parley.memory import Neighbour, OwnExamples, Search
from parley.memory.embedding_cache import EmbeddingCache, hash_text
from parley.memory.nearest import find_nearest

KEPT = 1000  # texts that are embedded before they are kept on disk
SHARE = 20  # texts that are embedded before it is said how far it is

Vector: TypeAlias = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors; a text has the same one in any company."""

    @property
    def width(self) -> int: ...

    def prepare(self) -> None:
        """Fetch what it needs; raises what a user can mend."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A vector for each text."""


class DenseRetriever:
    """Finds the nearest embeddings; those that were computed before are read from disk."""

    own_examples: OwnExamples = "fill"

    def __init__(self, name: str, version: str, encoder: Encoder) -> None:
        self.name, self.version, self.encoder = name, version, encoder
        self._known: dict[bytes, Vector] = {}

    def prepare(self) -> None:
        self.encoder.prepare()

    def search(self, wanted: Search) -> list[list[Neighbour]]:
        texts = list(dict.fromkeys([*wanted.stored, *wanted.queries]))
        numbers = {text: number for number, text in enumerate(texts)}
        stored = np.array([numbers[text] for text in wanted.stored], np.int64)
        queries = np.array([numbers[text] for text in wanted.queries], np.int64)
        if not len(stored) or not len(queries):
            return [[] for _ in wanted.queries]
        vectors = self.embed(texts)
        return find_nearest(vectors[queries], vectors[stored], wanted.k, wanted.barred, stored)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vector of each text: known, kept on disk or computed now."""
        keys = [hash_text(text) for text in texts]
        cache = EmbeddingCache(self.name, self.version, self.encoder.width)
        if missing := set(keys) - self._known.keys():
            self._known |= cache.load(missing)
        todo = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        new: dict[bytes, Vector] = {}
        try:
            for done, (some, vectors) in enumerate(self._computed(todo)):
                new |= zip(some, vectors, strict=True)
                self._known |= zip(some, vectors, strict=True)
                downloads.notify_watchers(
                    f"{self.name}: {min((done + 1) * SHARE, len(todo)):,} of {len(todo):,} texts"
                )
                if len(new) >= KEPT:
                    cache.keep(new, self._known)
                    new = {}
        finally:
            cache.keep(new, self._known)
            if todo:
                downloads.notify_watchers("")
        return np.array([self._known[key] for key in keys], np.float32)

    def _computed(
        self, todo: dict[bytes, str]
    ) -> Iterator[tuple[list[bytes], NDArray[np.float32]]]:
        keys = sorted(todo, key=lambda key: len(todo[key]))
        for start in range(0, len(keys), SHARE):
            some = keys[start : start + SHARE]
            yield some, self.encoder.embed([todo[key] for key in some])
