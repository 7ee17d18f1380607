"""Embeddings on disk, by retriever, version and text: an append-only file for each version of a
retriever, shared by all processes of a user.

A faulty file costs time, but never fails a run: what cannot be read is computed again, what cannot
be written is not cached. Every record has a checksum. If a record is torn or damaged, the file is
rewritten with what this process knows.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from os import SEEK_END, getpid, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from parley import downloads

MAGIC = b"parley embeddings 1\n"
KEY = 32  # bytes of a text's hash
CHECK = 4  # bytes of a checksum
LARGEST = 2**29  # bytes of a file; a file that would become larger is rewritten
LOCK_TIMEOUT = 5.0  # seconds to wait for another process that writes
POLL = 0.05  # seconds between two tries
READ = 2**20  # bytes that are read at a time, about

Vector: TypeAlias = NDArray[np.float32]


def hash_text(text: str) -> bytes:
    """The key of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


class EmbeddingCache:
    """The embeddings that one version of a retriever has computed, each of the same width."""

    def __init__(self, retriever: str, version: str, width: int) -> None:
        words = re.sub(r"[^\w.-]+", "-", retriever)[-60:]
        same = sha256(f"{retriever}\0{version}\0{width}".encode()).hexdigest()[:16]
        self.path = downloads.cache_folder() / "embeddings" / f"{words}-{same}.vectors"
        self.width = width
        self.damaged = False  # whether the last read found a fault

    @property
    def record(self) -> int:
        """Bytes of a record: key, vector, checksum."""
        return KEY + 4 * self.width + CHECK

    def load(self, wanted: set[bytes]) -> dict[bytes, Vector]:
        """The embeddings that are kept for some keys."""
        found: dict[bytes, Vector] = {}
        self.damaged = False
        with suppress(OSError):
            for record in self._records():
                if (key := record[:KEY]) in wanted:
                    found[key] = np.frombuffer(record[KEY:-CHECK], "<f4").astype(np.float32)
        return found

    def _records(self) -> Iterator[bytes]:
        """All whole records; another process may still be writing after the last of them."""
        with self.path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                self.damaged = True
                return
            size = self.record
            while piece := file.read(size * max(1, READ // size)):
                for start in range(0, len(piece) - size + 1, size):
                    record = piece[start : start + size]
                    if zlib.crc32(record[:-CHECK]).to_bytes(CHECK, "little") == record[-CHECK:]:
                        yield record
                    else:
                        self.damaged = True

    def keep(self, new: Mapping[bytes, Vector], known: Mapping[bytes, Vector]) -> None:
        """Append new embeddings; if the file is damaged or too large, replace it by all that this
        process knows."""
        if not new and not self.damaged:
            return
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with take_lock(self.path.with_suffix(".lock")) as locked:
                if locked:
                    self._write(new, known)

    def _write(self, new: Mapping[bytes, Vector], known: Mapping[bytes, Vector]) -> None:
        content = b"".join(map(self._pack, new.keys(), new.values()))
        try:
            with self.path.open("r+b") as file:
                size = file.seek(0, SEEK_END)
                if not self.damaged and len(MAGIC) <= size < LARGEST - len(content):
                    # a process that was killed may have left a part of a record at the end
                    size -= (size - len(MAGIC)) % self.record
                    file.seek(size)
                    file.truncate()
                    file.write(content)
                    return
        except FileNotFoundError:
            pass
        part = self.path.with_name(f"{self.path.name}-{getpid()}")
        try:
            everything = {**known, **new}
            part.write_bytes(
                MAGIC + b"".join(map(self._pack, everything.keys(), everything.values()))
            )
            replace(part, self.path)
            self.damaged = False
        finally:
            part.unlink(missing_ok=True)

    def _pack(self, key: bytes, vector: Vector) -> bytes:
        body = key + vector.astype("<f4").tobytes()
        return body + zlib.crc32(body).to_bytes(CHECK, "little")


@contextmanager
def take_lock(file: Path) -> Iterator[bool]:
    """Wait some seconds for the lock; whether this process may write. On systems without file locks
    every process may, and checksums detect records that two processes mixed up."""
    with file.open("wb") as lock:
        try:
            import fcntl
        except ImportError:
            yield True
            return
        last = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > last:
                    yield False
                    return
                time.sleep(POLL)
        yield True
