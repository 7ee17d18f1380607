"""A folder with one file per run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from parley.errors import StoreError, UsageError
from parley.store import find_run
from parley.store.address_forms import (
    FOLDER,
    RUN_FORMS,
    is_address,
    refuse_long_name,
    refuse_misspelled,
)
from parley.store.sqlite.run_file import SUFFIX, SqliteReader, ref_of
from parley.store.types import NewRun, RunInfo, RunRef, StoreFacts, UnreadableRun
from parley.tables import shorten

if TYPE_CHECKING:
    from parley.store.journal import Journal
    from parley.store.sqlite.votes_file import SqliteVerdictVotes, SqliteVotes
    from parley.store.sqlite.watch import SqliteWatch
    from parley.store.types import VerdictVotes

VOTES_FILE = "annotations.sqlite"


class FolderStore:
    """The runs in a folder, one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._was_there = folder.is_dir()

    @classmethod
    def at(cls, given: str) -> FolderStore:
        place = given.removeprefix(FOLDER)
        refuse_misspelled(place)
        return cls(expand_home(place))

    @property
    def name(self) -> str:
        return str(self.folder)

    def find(self, text: str) -> RunRef:
        refuse_long_name(text)
        if is_address(text):
            return find_run(text, text)
        direct = expand_home(text)
        if direct.suffix == SUFFIX or is_file(direct):
            if not is_file(direct):
                refuse_misspelled(text, RUN_FORMS)
                raise UsageError(
                    f"there is no file {text}: check the path, or use `parley ls` to list the runs"
                )
            return ref_of(direct)
        from parley.store.run_names import choose_run  # late: a path needs no search

        return choose_run(text, self.refs(), self.runs, self.folder)

    def find_exact(self, id: str) -> RunRef | None:
        path = self.folder / f"{id}{SUFFIX}"
        return ref_of(path) if path.name == f"{id}{SUFFIX}" and is_file(path) else None

    def refs(self) -> list[RunRef]:
        return [ref_of(path) for path in self._files()]

    def runs(self) -> Iterator[RunInfo | UnreadableRun]:
        for path in self._files():
            try:
                with SqliteReader(path) as reader:
                    yield reader.info
            except StoreError as wrong:
                yield UnreadableRun(ref_of(path), str(wrong))
            except Exception as wrong:  # one file must not hide the others
                fault = f"{type(wrong).__name__}: {shorten(str(wrong))}"
                yield UnreadableRun(ref_of(path), f"{path} cannot be read as a run: {fault}")

    def _files(self) -> list[Path]:
        """The files of runs, the newest first."""
        try:
            names = [name for name in os.listdir(self.folder) if name.endswith(SUFFIX)]
        except FileNotFoundError:
            if self._was_there:
                raise StoreError(
                    f"the store {self.folder} is gone: the folder was moved, deleted or unmounted"
                ) from None
            return []  # the first run creates it
        except NotADirectoryError:
            raise StoreError(
                f"the store {self.folder} must be a folder, but it is a file"
            ) from None
        except OSError as wrong:
            raise StoreError(f"the store {self.folder} cannot be read: {wrong.strerror}") from None
        self._was_there = True
        found = []
        for path in (self.folder / name for name in names):
            with suppress(OSError):  # it was deleted meanwhile
                facts = path.stat()
                if S_ISREG(facts.st_mode):
                    found.append((facts.st_mtime_ns, path.name, path))
        return [path for _, _, path in sorted(found, reverse=True)]

    def read(self, ref: RunRef) -> SqliteReader:
        return SqliteReader(Path(ref.location))

    def stamp(self, ref: RunRef) -> str:
        # the log of an open run grows while the file itself stays as it was
        return "/".join(filter(None, map(stamp_file, (ref.location, f"{ref.location}-wal"))))

    def watch(self, ref: RunRef) -> SqliteWatch:
        from parley.store.sqlite.watch import SqliteWatch  # late: few commands need it

        return SqliteWatch(Path(ref.location))

    async def create(self, run: NewRun) -> Journal:
        from parley.store.sqlite.create import create_file  # late: most commands only read
        from parley.store.sqlite.run_writer import open_run_file

        path = self.folder / f"{run.id}{SUFFIX}"
        create_file(path, run)
        return await open_run_file(path)

    async def open(self, ref: RunRef, notify: Callable[[str], None] = lambda said: None) -> Journal:
        from parley.store.sqlite.run_writer import open_run_file

        return await open_run_file(Path(ref.location), notify)

    def delete(self, ref: RunRef) -> None:
        from parley.store.refusals import refuse_running  # late: few commands delete

        path = Path(ref.location)
        try:
            with SqliteReader(path) as reader:
                if reader.info.state == "running":
                    refuse_running(reader.info.id)
        except StoreError:
            if path.suffix != SUFFIX:  # a damaged run can be deleted, another file cannot
                raise
        try:
            path.unlink()
            for suffix in ("-wal", "-shm", "-journal"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            for log in path.parent.glob(f"{escape(path.stem)}.*.log"):  # of servers for its models
                log.unlink()
        except OSError as wrong:
            raise StoreError(f"{path} cannot be deleted: {wrong.strerror}") from None

    def export_run(
        self, ref: RunRef, path: Path, replace: bool, tell: Callable[[str], None]
    ) -> None:
        from parley.store.sqlite.run_copy import export_run_file  # late: one command

        export_run_file(Path(ref.location), path, replace, votes_path(ref), tell)

    def import_run(self, path: Path, tell: Callable[[str], None]) -> RunRef:
        from parley.store.sqlite.run_copy import import_run_file  # late: one command

        votes_file = self.folder.absolute() / VOTES_FILE
        return ref_of(import_run_file(path, self.folder, votes_file, tell))

    def open_votes(self, refs: Sequence[RunRef] = (), read_only: bool = False) -> SqliteVotes:
        """The votes on these runs, in a file in the same folder; without runs, those in the folder
        of this store."""
        from parley.store.sqlite.votes_file import SqliteVotes  # late: few commands need it

        folders = sorted({Path(ref.location).absolute().parent for ref in refs})
        if len(folders) > 1:
            raise UsageError(
                f"the runs are in {len(folders)} different folders, but votes are stored beside "
                "the runs: copy all runs into one folder"
            )
        return SqliteVotes(self._votes_path(refs[0] if refs else None, read_only), read_only)

    def open_verdict_votes(
        self, ref: RunRef | None = None, read_only: bool = False
    ) -> SqliteVerdictVotes:
        """The votes on single conversations, in the same file."""
        from parley.store.sqlite.votes_file import SqliteVerdictVotes

        return SqliteVerdictVotes(self._votes_path(ref, read_only), read_only)

    def _votes_path(self, ref: RunRef | None, read_only: bool) -> Path:
        """The file of votes beside a run, or in the folder of this store."""
        path = self.folder.absolute() / VOTES_FILE if ref is None else votes_path(ref)
        if read_only and not path.is_file():
            raise UsageError(
                f"there are no votes yet: run `parley annotate draw RUN…` first ({path.name} does "
                "not exist beside these runs)"
            )
        return path

    def read_verdict_votes(self, ref: RunRef, run: str) -> VerdictVotes:
        from parley.store.sqlite.votes_file import SqliteVerdictVotes

        path = votes_path(ref)
        if not path.exists():
            return {}
        with SqliteVerdictVotes(path, read_only=True) as votes:
            return votes.votes(run)

    def check(self) -> StoreFacts:
        from parley.store.sqlite.filesystem import filesystem_type, is_network  # late: one command

        place = self.folder
        state = "rollback journal (network)" if is_network(place) else "ready"
        if not os.access(place if place.exists() else place.absolute().parent, os.W_OK):
            state = "cannot be written"
        return StoreFacts(str(place), filesystem_type(place), state)


def votes_path(ref: RunRef) -> Path:
    """The file of votes beside a run."""
    return Path(ref.location).absolute().parent / VOTES_FILE


def stamp_file(path: str) -> str:
    """Which file it is, its size and when it was changed; empty if there is nothing in it: a reader
    may leave an empty log."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    if not found.st_size:
        return ""
    return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"


def expand_home(path: str) -> Path:
    """A path with ~ expanded."""
    try:
        return Path(path).expanduser()
    except RuntimeError as wrong:
        raise UsageError(f"{path}: {wrong}") from None


def is_file(path: Path) -> bool:
    """Whether a path is a file; False for a path that the file system rejects."""
    try:
        return path.is_file()
    except OSError:
        return False
