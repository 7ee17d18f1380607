"""The folder layout of AgentBench's OS tasks: `data/1/*.json` to `data/7/*.json` with scripts in
`scripts/1` to `scripts/7`, and `data/dev.json` with `scripts/dev`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

WITHIN = ("data/os_interaction/data", "os_interaction/data", "data", ".")


def find_os_files(folder: Path) -> list[Path]:
    """The files of AgentBench's tasks (os-std) below a folder: the repository, `os_interaction` or
    its `data`. Empty if the folder has another layout."""
    for place in WITHIN:
        data = folder / place
        if (data.parent / "scripts").is_dir() or (data / "../scripts").is_dir():
            numbered = (each for each in data.glob("*/*.json") if each.parent.name.isdigit())
            if found := sorted(numbered, key=lambda each: (int(each.parent.name), each.name)):
                return found
    return []


def is_os_entry(found: Any) -> bool:
    """Whether a whole file is one task instead of a list, like some of AgentBench's."""
    return isinstance(found, dict) and {"description", "evaluation"} <= found.keys()


def name_os_entry(file: Path, number: int) -> str:
    """The id of an entry without one, as in AgentBench."""
    return f"std-{int(file.parent.name):03d}-{file.stem}-{number - 1:05d}"


def script_folders(file: Path) -> Iterator[Path]:
    """The folders in which scripts of a task file may be. A folder that is a link to elsewhere is
    skipped, because the file may come from somebody else."""
    file = file.absolute()  # otherwise the folder above the current one would be the current one
    numbered = file.parent.name.isdigit()
    above = (file.parent.parent if numbered else file.parent).parent
    beside = above / "scripts" / (file.parent.name if numbered else file.stem)
    for folder, within in (
        (beside, above),
        (file.parent / "scripts", file.parent),
        (file.parent, file.parent),
    ):
        if folder.resolve().is_relative_to(within.resolve()):
            yield folder
