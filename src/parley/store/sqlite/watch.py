"""Notices that the file of a run has changed, at a fraction of the cost of reading it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from parley.errors import StoreError
from parley.store.sqlite.run_file import UNREADABLE, connect_to_read


class SqliteWatch:
    """The changes of one file. Its connection holds no snapshot, so the writer can shorten its
    log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._seen: tuple[int, int] | None = None  # which file, and SQLite's count of its changes
        self.has_changed()

    def has_changed(self) -> bool:
        try:
            file = os.stat(self.path).st_ino
            if self._seen is None or self._seen[0] != file:  # another file has taken its place
                self.close()
                self._connection = connect_to_read(self.path, any_thread=True)
            assert self._connection is not None
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except (OSError, *UNREADABLE) as wrong:
            self.close()
            self._seen = None
            if isinstance(wrong, FileNotFoundError):
                raise StoreError(f"there is no file {self.path}") from None
            raise StoreError(f"{self.path} cannot be read as a run: {wrong}") from None
        before, self._seen = self._seen, (file, version)
        return before != self._seen

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
