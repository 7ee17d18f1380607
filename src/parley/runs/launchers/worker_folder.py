"""A folder through which a launcher gives secrets to workers on other machines, and in which they
leave their output."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from parley.downloads import cache_folder
from parley.errors import UsageError

VARIABLE = "PARLEY_WORKER_FOLDER"
ENVIRONMENT = "environment"
LAST_LINES = 20  # of the output of a worker that are shown
LONGEST = 8192  # bytes of them


def create_worker_folder(variables: Mapping[str, str]) -> Path:
    """A new folder that only this user can read, with a file of environment variables."""
    given = os.environ.get(VARIABLE)
    parent = Path(given).expanduser() if given else cache_folder() / "workers"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="launch-", dir=parent))  # mode 0700
        write_variables(folder / ENVIRONMENT, variables)
    except OSError as wrong:
        raise UsageError(
            f"the folder for workers cannot be written: {parent}: {wrong.strerror}; set {VARIABLE} "
            "to a folder that all machines share"
        ) from None
    return folder.resolve()


def write_variables(path: Path, variables: Mapping[str, str]) -> None:
    """Write variables as in /proc/PID/environ, into a file that only this user can read."""
    for name, value in variables.items():
        if not re.fullmatch(r"\w+", name) or "\0" in value:
            raise UsageError(f"{name!r} cannot be an environment variable of a worker")
    text = "".join(f"{name}={value}\0" for name, value in variables.items())
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def read_variables(path: Path) -> dict[str, str]:
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    pairs = (part.partition("=") for part in text.split("\0") if part)
    return {name: value for name, _, value in pairs}


def read_last_lines(file: IO[bytes]) -> str:
    """The last lines of a file; its position is its end afterwards."""
    file.seek(max(0, os.fstat(file.fileno()).st_size - LONGEST))
    text = file.read().decode(errors="replace")
    return "\n".join(text.strip().splitlines()[-LAST_LINES:])
