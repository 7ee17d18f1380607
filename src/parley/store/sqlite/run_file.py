"""A run's file, read: nothing here writes, and a run may be read while it is played."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from parley.errors import StoreError
from parley.store.dialect import Dialect
from parley.store.reader import RunReader
from parley.store.reader.run import read_info
from parley.store.reader.snapshot import Snapshot
from parley.store.sqlite.schema import SAME_SUMS, find_stranger, refuse_unreadable, sum_as_sql
from parley.store.types import DigestFault, RunRef

if TYPE_CHECKING:
    from parley.store.verdict_votes import VoteRow

# what SQLite says of a damaged file; its message may itself be no text
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
SUFFIX = ".parley"
REMEDY = "restore the file from a backup"
STEPS, STEPS_PER_BYTE, STEPS_BETWEEN_LOOKS = 50_000_000, 10, 1_000_000
DIALECT = Dialect(
    seats="json_each(m.seats) s",
    chosen="json_each(?) AS chosen",
    number_list="json_group_array(number)",
    add_up=sum_as_sql,
    contains=lambda text, part: f"instr({text}, {part}) > 0",
    length=lambda column: f"LENGTH({column})",
    use_index=lambda name: f"INDEXED BY {name}",
    not_indexed="+",
)


class SqliteSnapshot(Snapshot):
    """A snapshot of the run in a file."""

    dialect = DIALECT
    remedy = REMEDY

    def __init__(self, path: Path, named: Path | None = None) -> None:
        """`named`: the file that messages name, if the one at `path` is a copy of it."""
        opened, path = path, named or path
        self.path = path
        try:
            self._connection = connect_to_read(opened)
        except (OSError, *UNREADABLE) as wrong:
            raise StoreError(f"{path} cannot be read as a run: {wrong}") from None
        # A query on a genuine run takes a few steps for each byte of the file; a file could be
        # crafted to make it take days.
        self._steps, self._most_steps = 0, STEPS + STEPS_PER_BYTE * opened.stat().st_size
        try:
            refuse_unreadable(self._connection, str(path))
            if stranger := find_stranger(self._connection):
                self._connection.close()
                raise StoreError(
                    f"Parley does not read {path}, because the file contains {stranger}, which "
                    "Parley did not create and which could falsify results"
                )
            self._connection.execute("BEGIN")  # a consistent snapshot of the run
            super().__init__(ref_of(path))
            self.info = read_info(self)
        except UNREADABLE as wrong:
            self._connection.close()
            raise StoreError(f"{path} cannot be read as a run: {wrong}") from None
        except BaseException:
            self._connection.close()
            raise
        self._connection.set_progress_handler(self._is_endless, STEPS_BETWEEN_LOOKS)

    def close(self) -> None:
        self._connection.close()

    def _is_endless(self) -> bool:
        self._steps += STEPS_BETWEEN_LOOKS
        return self._steps > self._most_steps

    def rows(self, query: str, *values: Any) -> Iterator[Any]:
        self._steps = 0
        try:
            # no `yield from`: it would close the cursor of a reader that is already closed
            for row in self._connection.execute(query, values):  # noqa: UP028
                yield row
        except (OverflowError, *UNREADABLE) as wrong:
            endless = f"a query took more than {self._most_steps:,} steps"
            fault = endless if self._steps > self._most_steps else wrong
            raise StoreError(f"{self.path} cannot be read: {fault}") from None

    def find_changes(
        self, report: Callable[[int], None] = lambda checked: None
    ) -> Iterator[DigestFault]:
        from parley.store.changes import find_changes  # late: few commands need it

        self._connection.set_progress_handler(None, 0)  # many small queries
        try:
            (sound,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
            if sound != "ok":
                yield DigestFault(None, f"SQLite finds the file corrupt: {sound}")
            yield from find_changes(self._connection, SAME_SUMS, report)
        except (TypeError, *UNREADABLE) as wrong:
            raise StoreError(f"{self.path} cannot be read: {wrong}") from None

    def carried_votes(self) -> list[VoteRow]:
        """The votes of people that the file contains while the run moves to another store."""
        from parley.store.verdict_votes import VOTE_ROWS, read_vote_rows

        has_votes = self.row("SELECT 1 FROM sqlite_schema WHERE name = 'verdict_votes'")
        return read_vote_rows(self.rows(VOTE_ROWS, self.info.id), self.path) if has_votes else []


class SqliteReader(RunReader):
    """Reads the run in a file. Use it as a context manager."""

    snapshot: SqliteSnapshot

    def __init__(self, path: Path, named: Path | None = None) -> None:
        """`named`: the file that messages name, if the one at `path` is a copy of it."""
        super().__init__(SqliteSnapshot(path, named))


def ref_of(path: Path) -> RunRef:
    """The run in a file."""
    return RunRef(f"folder:{path.parent}", path.name.removesuffix(SUFFIX), str(path))


def connect_to_read(path: Path, any_thread: bool = False) -> sqlite3.Connection:
    """A read-only connection. In a folder without write access, only the file itself is read.

    `any_thread`: several threads may use it, one at a time.
    """
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    address = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(
        address, uri=True, timeout=10, isolation_level=None, check_same_thread=not any_thread
    )
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if Path(f"{path}-wal").exists():
            raise
        connection = sqlite3.connect(
            f"{address}&immutable=1",
            uri=True,
            isolation_level=None,
            check_same_thread=not any_thread,
        )
    return connection
