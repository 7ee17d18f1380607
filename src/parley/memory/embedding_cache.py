"""Embeddings on disk, by retriever, version and text: an SQLite table that all processes of a user
share.

A cache that cannot be used never fails a run: embeddings are then computed again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from parley import downloads

LOCK_TIMEOUT = 5.0  # seconds to wait for another process that writes

Vector: TypeAlias = NDArray[np.float32]


class EmbeddingCache:
    """The embeddings that one version of a retriever has computed."""

    def __init__(self, retriever: str, version: str) -> None:
        self.retriever, self.version = retriever, version
        self.notice = ""  # why the cache is not used any more

    @property
    def path(self) -> Path:
        return downloads.cache_folder() / "embeddings.sqlite"

    def make_key(self, text: str) -> bytes:
        content = f"{self.retriever}\0{self.version}\0{text}"
        return sha256(content.encode("utf-8", "surrogatepass")).digest()

    def load(self, keys: Iterable[bytes], width: int) -> dict[bytes, Vector]:
        """The embeddings that are kept for some keys, each of the same width."""
        found: dict[bytes, Vector] = {}

        def read(file: sqlite3.Connection) -> None:
            file.execute("BEGIN")  # lock once, not for every key
            for key in keys:
                rows = file.execute("SELECT vector FROM embeddings WHERE key = ?", (key,))
                for (vector,) in rows:
                    if isinstance(vector, bytes) and len(vector) == 4 * width:
                        found[key] = np.frombuffer(vector, "<f4").astype(np.float32)

        self._use(read)
        return found

    def keep(self, new: Mapping[bytes, Vector]) -> None:
        """Add embeddings."""
        if new:
            rows = [(key, vector.astype("<f4").tobytes()) for key, vector in new.items()]
            insert = "INSERT OR REPLACE INTO embeddings VALUES (?, ?)"
            self._use(lambda file: file.executemany(insert, rows))

    def _use(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Do some work in one transaction; after the first fault, do nothing."""
        if self.notice:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=LOCK_TIMEOUT)) as file, file:
                file.execute(
                    "CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, vector BLOB)"
                )
                work(file)
        except (OSError, sqlite3.Error) as wrong:
            self.notice = (
                f"the cache of embeddings cannot be used: {wrong} ({self.path}). Parley computes "
                "the embeddings again. If this happens in every run, delete the file or set "
                "PARLEY_CACHE to another folder"
            )
