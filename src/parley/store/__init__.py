"""Where runs are kept: what a store offers, and how it is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from parley.store.address_forms import is_address
from parley.store.types import NewRun, RunInfo, RunRef, StoreFacts, UnreadableRun, VerdictVotes

if TYPE_CHECKING:
    from parley.store.journal import Journal
    from parley.store.pair_votes import VoteStore
    from parley.store.reader import RunReader
    from parley.store.verdict_votes import VerdictVoteStore


class RunWatch(Protocol):
    """Notices that a run has changed, without reading it. Use it in one thread at a time."""

    def close(self) -> None: ...

    def has_changed(self) -> bool:
        """Whether the run has changed since this was last asked; `StoreError` if it has
        vanished."""


class Store(Protocol):
    """Where runs are kept, and the votes of people on them."""

    @property
    def name(self) -> str:
        """The folder or the address, as it may be shown and typed again: without a password."""

    def find(self, text: str) -> RunRef:
        """A run by its path, its id, a unique beginning or end of its id, its name, or `last`."""

    def find_exact(self, id: str) -> RunRef | None:
        """The run of this store with exactly this id; None if there is none."""

    def refs(self) -> list[RunRef]:
        """All runs, newest first, without reading them."""

    def runs(self) -> Iterator[RunInfo | UnreadableRun]:
        """All runs, newest first."""

    def read(self, ref: RunRef) -> RunReader: ...

    def stamp(self, ref: RunRef) -> str:
        """A text that differs after every change of the run, to cache what was read; empty if the
        run has vanished. It is cheap: the run is not opened."""

    def watch(self, ref: RunRef) -> RunWatch:
        """Follow the changes of a run; `StoreError` if it cannot be opened."""

    async def create(self, run: NewRun) -> Journal:
        """Create a run and take it."""

    async def open(self, ref: RunRef, notify: Callable[[str], None] = lambda said: None) -> Journal:
        """Take a run to play it; `StoreError` if another process plays it. A run of another
        machine is taken over after a minute without a heartbeat; `notify` is called before such a
        wait."""

    def delete(self, ref: RunRef) -> None:
        """Delete a run; `UsageError` if it is running, `StoreError` if it cannot be deleted."""

    def export_run(
        self, ref: RunRef, path: Path, replace: bool, tell: Callable[[str], None]
    ) -> None:
        """Write a run, as it is now, and the votes on its conversations into a new run file,
        completely or not at all. The copy of a run that is being played is an interrupted run.
        `replace`: an existing file may be replaced. `tell` is called with the progress."""

    def import_run(self, path: Path, tell: Callable[[str], None]) -> RunRef:
        """Add the run in a run file to this store, with the votes that the file carries,
        completely or not at all. Refuses a run that the store has, and a changed record."""

    def open_votes(self, refs: Sequence[RunRef] = (), read_only: bool = False) -> VoteStore:
        """The votes on these runs of this store, or on all its runs."""

    def open_verdict_votes(
        self, ref: RunRef | None = None, read_only: bool = False
    ) -> VerdictVoteStore:
        """The votes on single conversations of a run of this store, or of all its runs."""

    def read_verdict_votes(self, ref: RunRef, run: str) -> VerdictVotes:
        """The votes on single conversations of the run with this id; none where nobody has
        voted."""

    def check(self) -> StoreFacts:
        """Whether runs can be written here."""


def open_store(given: str | Path | None = None) -> Store:
    """The store at a place: as given, else `PARLEY_STORE`, else the folder `runs/` here."""
    place = (str(given) if given is not None else "") or os.environ.get("PARLEY_STORE") or "runs"
    if is_address(place):
        from parley.store.postgres.database import PostgresStore  # late: it loads the driver

        return PostgresStore.at(place)
    from parley.store.sqlite.folder import FolderStore  # late: it loads SQLite

    return FolderStore.at(place)


def name_store(given: str | Path | None = None) -> str:
    """The store at a place as it may be shown: without a password."""
    return open_store(given).name


def find_sqlite_version() -> str:
    """The version of SQLite, which writes run files."""
    from parley.store.sqlite.schema import SQLITE_VERSION  # late: it loads SQLite

    return SQLITE_VERSION


def find_run(text: str | Path, store: str | Path | None = None) -> RunRef:
    """A run in a store, by anything that `Store.find` takes."""
    return open_store(store).find(str(text))


def read_run(ref: RunRef) -> RunReader:
    """A run, opened for reading."""
    return open_store(ref.store).read(ref)


def open_votes(refs: Sequence[RunRef], read_only: bool = False) -> VoteStore:
    """The votes on these runs, in the store of the runs."""
    return open_store(refs[0].store).open_votes(refs, read_only)


def open_verdict_votes(ref: RunRef) -> VerdictVoteStore:
    """The votes on single conversations of a run, in the store of the run, to add votes."""
    return open_store(ref.store).open_verdict_votes(ref)


def read_verdict_votes(reader: RunReader) -> VerdictVotes:
    """The votes on single conversations of a run; none where nobody has voted."""
    ref = reader.info.ref
    return open_store(ref.store).read_verdict_votes(ref, reader.info.id)
