"""A copy of a run in a file of its own, which moves between stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from parley.errors import StoreError, UsageError
from parley.store.changes import refuse_faults
from parley.store.copied_run import INTERRUPT
from parley.store.reader import RunReader
from parley.store.refusals import refuse_imported
from parley.store.sqlite.new_file import new_file
from parley.store.sqlite.run_file import (
    REMEDY,
    SUFFIX,
    UNREADABLE,
    SqliteReader,
    connect_to_read,
)
from parley.store.sqlite.run_writer import for_file, placeholders, seal_run
from parley.store.sqlite.schema import create_run_tables, create_table, refuse_unreadable
from parley.store.sqlite.votes_file import SqliteVerdictVotes
from parley.store.tables import RUN_TABLES, VERDICT_VOTES, list_names
from parley.store.verdict_votes import VoteRow, add_vote_rows
from parley.tables import plural, shorten

PAGES = 2500  # of SQLite, copied at a time: about 10 MB
ROWS_BETWEEN_REPORTS = 5000
LONGEST_ID = 200  # characters
Tell = Callable[[str], None]


def copy_run_file(source: Path, target: Path, tell: Tell) -> None:
    """Copy the run in a file as it is now, also while it is being played, into an empty file.
    Nobody plays the copy."""
    with closing(connect_new(target)) as copy:
        copy_pages(source, copy, tell)
        copy.execute("PRAGMA journal_mode = DELETE")  # the mode of the source is part of the copy
        with SqliteReader(target, named=source) as reader:
            is_played = reader.info.state == "running"
        copy.execute("BEGIN")
        copy.execute("UPDATE runs SET owner = NULL, token = NULL, heartbeat = NULL, heartbeats = 0")
        number_calls(copy)
        if is_played:
            interrupt_run(copy)
        copy.execute("COMMIT")


def connect_new(target: Path) -> sqlite3.Connection:
    """A connection to an empty file, which is thrown away after an error. So it needs no journal,
    and is not written to disk before it is complete."""
    connection = sqlite3.connect(target, isolation_level=None)
    for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def copy_pages(source: Path, copy: sqlite3.Connection, tell: Tell) -> None:
    """Copy a file."""

    def report(status: int, left: int, pages: int) -> None:
        tell(f"copying {source.name}: {1 - left / max(pages, 1):.0%}")

    try:
        with closing(connect_to_read(source)) as connection:
            refuse_unreadable(connection, str(source))
            refuse_to_block(connection, source)
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # the snapshot begins
            connection.backup(copy, pages=PAGES, progress=report, sleep=0)
    except UNREADABLE as wrong:
        if getattr(wrong, "sqlite_errorname", "") in ("SQLITE_FULL", "SQLITE_IOERR_WRITE"):
            raise  # by the copy
        raise StoreError(f"{source} cannot be read as a run: {wrong}") from None


def refuse_to_block(connection: sqlite3.Connection, source: Path) -> None:
    """Refuse a run whose player could not write while it is copied."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode == "wal":
        return
    with SqliteReader(source) as reader:
        if reader.info.state == "running":
            raise UsageError(
                f"{source} is being played on a file system that does not support SQLite's WAL, "
                "where nobody can write to the run while it is copied: wait until it ends, or "
                "stop it"
            )


def number_calls(connection: sqlite3.Connection) -> None:
    """Number the calls from 1 on, as in a copy from a database. Matches that were restarted have
    left gaps."""
    last, count = connection.execute("SELECT MAX(id), COUNT(*) FROM calls").fetchone()
    if count and last != count:
        connection.execute(
            "UPDATE calls SET id = numbered.n FROM (SELECT id AS old, ROW_NUMBER() OVER "
            "(ORDER BY id) AS n FROM calls) AS numbered WHERE calls.id = numbered.old"
        )


def interrupt_run(connection: sqlite3.Connection) -> None:
    """Stop the run in a copy, which nobody plays."""
    for statement, values in INTERRUPT:
        connection.execute(for_file(statement), values)
    seal_run(connection)


def write_run_file(reader: RunReader, votes: Sequence[VoteRow], target: Path, tell: Tell) -> None:
    """Write a run and the votes on it into an empty file."""
    with closing(connect_new(target)) as copy:
        create_run_tables(copy)
        copy.execute("BEGIN")
        for name, table in RUN_TABLES.items():
            marks = placeholders(len(table.moved), 1)
            copy.executemany(
                f"INSERT INTO {name} ({list_names(table.moved)}) VALUES {marks}",
                report_rows(reader.snapshot.moved_rows(name), name, tell),
            )
        if reader.info.state == "running":
            interrupt_run(copy)
        carry_votes(copy, reader.info.id, votes)
        copy.execute("COMMIT")


def report_rows(rows: Iterable[Sequence[Any]], table: str, tell: Tell) -> Iterator[Sequence[Any]]:
    """The same rows; says now and then how many there were."""
    for count, row in enumerate(rows):
        if count % ROWS_BETWEEN_REPORTS == 0 and count:
            tell(f"copying {table.replace('_', ' ')}: {count:,} so far")
        yield row


def carry_votes(copy: sqlite3.Connection, run: str, votes: Sequence[VoteRow]) -> None:
    """Write votes of people on conversations into the file of a run. In a store they are beside the
    runs, so the file has a table for them only while the run moves."""
    if votes:
        copy.execute(create_table(VERDICT_VOTES).replace("TABLE", "TABLE IF NOT EXISTS"))
        add_vote_rows(copy, run, votes)


@contextmanager
def read_to_import(source: Path, tell: Tell) -> Iterator[SqliteReader]:
    """A run in a file, whose record is unchanged."""
    with closing(connect_to_read(source)) as connection:
        refuse_unreadable(connection, str(source))
        refuse_to_block(connection, source)
    with SqliteReader(source) as reader:
        check_importable(reader, tell)
        yield reader


def check_importable(reader: SqliteReader, tell: Tell) -> None:
    """Refuse a run whose record was changed."""
    planned = reader.info.planned

    def report(checked: int) -> None:
        tell(f"checking the record: {checked:,} of {plural(planned, 'match', 'matches')}")

    faults = list(reader.snapshot.find_changes(report))
    refuse_faults(faults, str(reader.snapshot.path), "the run is not imported", REMEDY)


def read_id(source: Path) -> str:
    """The id of the run in a file. It becomes a name in a store, so it must be a plain one."""
    try:
        with closing(connect_to_read(source)) as connection:
            refuse_unreadable(connection, str(source))
            ids = [id for (id,) in connection.execute("SELECT id FROM runs LIMIT 2")]
    except UNREADABLE as wrong:
        raise StoreError(f"{source} cannot be read as a run: {wrong}") from None
    if len(ids) != 1:
        raise StoreError(f"{source} contains {'several runs' if ids else 'no run'}")
    (id,) = ids
    is_plain = isinstance(id, str) and id.isprintable() and 0 < len(id) <= LONGEST_ID
    if not is_plain or Path(id).name != id or id.startswith((".", "-")):
        raise StoreError(
            f"{source} is not imported, because the id of its run is not a plain name: "
            f"{shorten(repr(id))}"
        )
    return str(id)


def export_run_file(
    source: Path, target: Path, replace: bool, votes_file: Path, tell: Tell
) -> None:
    """Copy the run in a file, and the votes on it in a file of votes, into a new file."""
    if target.exists() and source.exists() and target.samefile(source):
        raise UsageError(f"{target} is the file of this run: choose another name")
    run = read_id(source)
    with new_file(target, replace) as unfinished:
        copy_run_file(source, unfinished, tell)
        if votes_file.exists():
            with SqliteVerdictVotes(votes_file, read_only=True) as beside:
                votes = beside.vote_rows(run)
            with closing(connect_new(unfinished)) as copy:
                carry_votes(copy, run, votes)


def import_run_file(source: Path, folder: Path, votes_file: Path, tell: Tell) -> Path:
    """Copy a run file into a folder, and the votes that it carries into the file of votes there;
    returns the new file."""
    run = read_id(source)
    target = folder / f"{run}{SUFFIX}"
    if target.exists():
        refuse_imported(run, str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as wrong:
        raise StoreError(f"{folder} cannot be written: {wrong.strerror}") from None
    with new_file(target) as unfinished:
        copy_run_file(source, unfinished, tell)
        with SqliteReader(unfinished, named=source) as reader:
            check_importable(reader, tell)
            votes = reader.snapshot.carried_votes()
        if votes:
            # Votes first: without the run they do no harm, and importing it again adds none twice.
            with SqliteVerdictVotes(votes_file) as beside:
                beside.add_rows(run, votes)
            with closing(connect_new(unfinished)) as copy:
                copy.execute("DROP TABLE verdict_votes")
    return target
