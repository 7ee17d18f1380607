"""A folder with one file a run."""

from __future__ import annotations

import os
from pathlib import Path

from parley.errors import StoreError, UsageError, unknown

SUFFIX = ".parley"


def folder(given: str | None = None) -> Path:
    """The store: as given, else `PARLEY_STORE`, else `runs/` here."""
    place = given or os.environ.get("PARLEY_STORE") or "runs"
    if "://" in place:
        raise UsageError(f"a store is a folder in this version, not {place.split('://')[0]}://…")
    return at_home(place)


def at_home(path: str) -> Path:
    """A path with its ~ replaced."""
    try:
        return Path(path).expanduser()
    except RuntimeError as wrong:
        raise UsageError(f"{path}: {wrong}") from None


def files(place: Path) -> list[Path]:
    """The runs in a store, newest first."""
    if place.exists() and not place.is_dir():
        raise StoreError(f"{place} is not a folder; a store is one")
    found = [path for path in place.glob(f"*{SUFFIX}") if path.is_file()]
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


def is_file(path: Path) -> bool:
    """Whether a path leads to a file; one that no file system takes leads nowhere."""
    try:
        return path.is_file()
    except OSError:
        return False


def named(path: Path) -> str:
    """The name that a run was given; what cannot be read has none."""
    from parley.store.sqlite.reader import SqliteReader

    try:
        with SqliteReader(path) as reader:
            return reader.info.config.name
    except StoreError:
        return ""


def find(run: str, place: Path) -> Path:
    """The file of a run: by its path, its id, an unmistakable beginning of that, the name it was
    given, or `last`."""
    if len(os.fsencode(run)) > 4000:
        raise UsageError(f"{run[:40]}… is too long for the name of a run")
    direct = at_home(run)
    if direct.suffix == SUFFIX or is_file(direct):
        if not is_file(direct):
            raise UsageError(f"there is no file {run}")
        return direct
    known = files(place)
    if run == "last" and known:
        return known[0]
    names = {path.name.removesuffix(SUFFIX): path for path in known}
    if run in names:
        return names[run]
    begun = [n for n, path in names.items() if named(path) == run] or [
        name for name in names if name.startswith(run)
    ]
    if len(begun) == 1:
        return names[begun[0]]
    if begun:
        raise UsageError(f"{run!r} fits several runs: {', '.join(sorted(begun))}")
    raise unknown(f"run (store {place}):", run, list(names)[:10])
