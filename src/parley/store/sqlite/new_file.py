"""Writes a file completely or not at all."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from parley.errors import StoreError, UsageError

SIDE_FILES = ("-wal", "-shm", "-journal")  # of SQLite, beside its file


@contextmanager
def new_file(path: Path, replace: bool = False) -> Iterator[Path]:
    """An empty file beside `path` to write to, which gets this path when the block has ended
    without an error. After an error nothing is left, and what is at `path` has not changed. A file
    that a killed process left behind is written again. `replace`: an existing file may be
    replaced."""
    refuse_existing(path, replace)
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with lock_new_file(unfinished, path):
            try:
                yield unfinished
                refuse_existing(path, replace)
                sync_to_disk(unfinished)
                os.replace(unfinished, path)
                sync_to_disk(path.parent)
            except BaseException:
                with suppress(OSError):
                    unfinished.unlink()
                    delete_side_files(unfinished)
                raise
    except (OSError, sqlite3.Error) as wrong:
        raise StoreError(f"{path} cannot be written: {explain_fault(wrong)}") from None


def refuse_existing(path: Path, replace: bool) -> None:
    """Refuse a path where there is a file, and one where SQLite would mix the new file with the log
    of another."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder: give the path of a file")
    if path.exists() and not replace:
        raise UsageError(f"{path} already exists: choose another name, or replace it with --force")
    for suffix in ("-wal", "-journal"):
        if (side := path.with_name(path.name + suffix)).exists():
            raise UsageError(
                f"{path} cannot be replaced, because {side.name} belongs to a run there that is "
                "being played or was killed: choose another name, or delete that run"
            )


@contextmanager
def lock_new_file(unfinished: Path, path: Path) -> Iterator[None]:
    """Let one process write to a path at a time. On a system without locks several may, and the
    last file stays."""
    while True:
        lock = unfinished.open("ab")
        try:
            with suppress(ImportError):
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # another process may have given the file its own name since it was opened
            if unfinished.exists() and os.path.samestat(
                os.stat(unfinished), os.fstat(lock.fileno())
            ):
                break
        except BlockingIOError:
            lock.close()
            raise StoreError(
                f"another process is writing {path}: wait until it ends, or choose another name"
            ) from None
        except BaseException:
            lock.close()
            raise
        lock.close()
    with lock:
        lock.truncate(0)
        delete_side_files(unfinished)
        yield


def delete_side_files(path: Path) -> None:
    """Delete what SQLite may have left beside a file."""
    for suffix in SIDE_FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def sync_to_disk(path: Path) -> None:
    """Make the content of a file, or the names in a folder, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def explain_fault(wrong: OSError | sqlite3.Error) -> str:
    """Why a file cannot be written, and what to do about it."""
    if not isinstance(wrong, OSError):
        full = getattr(wrong, "sqlite_errorname", "") == "SQLITE_FULL"
        return f"{wrong}: free some space, or choose another disk" if full else str(wrong)
    if wrong.errno == errno.ENOSPC:
        return f"{wrong.strerror}: free some space, or choose another disk"
    if wrong.errno == errno.ENOENT:
        return "its folder does not exist: create it first"
    return wrong.strerror or str(wrong)
