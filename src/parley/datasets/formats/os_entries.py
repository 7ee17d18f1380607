"""Command-line tasks in AgentBench's format: a description, scripts that prepare the machine, and
the evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parley.datasets.files import LocatedRow
from parley.datasets.formats import Form, Row
from parley.datasets.os_folders import script_folders
from parley.errors import describe_type
from parley.rules.items.os_entry import OSEntry
from parley.tables import shorten

# In the edition of inspect-evals, tasks start in the home directory of a separate user.
INSPECT, INSPECT_HOME = "agent_bench_os", "/home/agent"
# What the checks of published tasks need, by the end of the file's path and the number there. The
# scripts show it, too; this holds where a script is missing.
PUBLISHED_NEEDS: dict[str, dict[int, tuple[str, ...]]] = {
    "os_interaction/data/2/environment.json": {4: ("programs", "commands")},  # ~/.bashrc
    "os_interaction/data/5/new.json": dict.fromkeys((0, 1, 2), ("programs",)),
    "os_interaction/data/6/confidentiality.json": {2: ("commands",)},  # other users' shells
    "os_interaction/data/6/integrity.json": dict.fromkeys((1, 2), ("commands",)),
    "os_interaction/data/6/new.json": dict.fromkeys((2, 5, 6, 8), ("commands",)),
    "os_interaction/data/7/bootstrap.json": dict.fromkeys((0, 1, 4), ("processes",)),
    "os_interaction/data/dev.json": dict.fromkeys((3, 5), ("programs",)),
    "agent_bench/data/agent_bench_os_test.json": {
        11: ("programs", "commands"),
        **dict.fromkeys((18, 19, 20), ("programs",)),
        **dict.fromkeys((30, 33, 34), ("commands",)),
        **dict.fromkeys((37, 38, 41, 112), ("processes",)),
    },
}


def with_files(found: LocatedRow) -> Row:
    """Replace references to script files in a row by the scripts."""
    row = dict(found.row)
    if isinstance(row.get("create"), Mapping):
        row["create"] = inline_scripts(row["create"], found)
    for key in ("evaluation", "start", "example"):
        row[key] = inline_scripts(row.get(key), found)
    if found.file.startswith(INSPECT):
        row = {"home": INSPECT_HOME, "folder": INSPECT_HOME, **row}
    return {**row, "needs": [*as_list(row.get("needs")), *published_needs(found)]}


def published_needs(found: LocatedRow) -> tuple[str, ...]:
    """What the checks of a published task need."""
    place = "/".join(found.path.parts) if found.path is not None else ""
    known = next((PUBLISHED_NEEDS[end] for end in PUBLISHED_NEEDS if place.endswith(f"/{end}")), {})
    number = found.row.get("id", found.number - 1)
    return known.get(number, ()) if isinstance(number, int) else ()


def inline_scripts(value: Any, found: LocatedRow) -> Any:
    """Replace every `{"file": …}` by the code of that file, or mark it as missing."""
    if isinstance(value, list):
        return [inline_scripts(each, found) for each in value]
    if not isinstance(value, Mapping):
        return value
    if isinstance(name := value.get("file"), str):
        kept = {"language": value["language"]} if value.get("language") else {}
        for folder in () if found.path is None else script_folders(found.path):
            if (place := find_script(folder, name)) is not None:
                found.check_path(place)
                return {"code": place.read_text(encoding="utf-8", errors="replace"), **kept}
        return {"code": "", "missing": shorten(name), **kept}
    return {key: inline_scripts(each, found) for key, each in value.items()}


def find_script(folder: Path, name: str) -> Path | None:
    """The file of this name in a folder; None if there is none, or it lies elsewhere."""
    try:
        place = (folder / name).resolve()
        return place if place.is_relative_to(folder.resolve()) and place.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long, no name of a file, links in a circle
        return None


def os_entry_fields(row: Row) -> dict[str, Any]:
    if not isinstance(row["description"], str):
        raise ValueError(f"`description` must be text, not {describe_type(row['description'])}")
    evaluation = row["evaluation"]
    if not isinstance(evaluation, Mapping):
        raise ValueError(f"`evaluation` must be an object, not {shorten(repr(evaluation))}")
    create = row.get("create")
    init = create.get("init") if isinstance(create, Mapping) else None
    example = evaluation.get("example", row.get("example"))
    own = {key: row[key] for key in ("id", "home", "folder") if row.get(key) is not None}
    return {
        **own,
        "description": row["description"].strip(),
        "subject": first_label(row.get("labels")),
        "init": [read_script(each, "create.init") for each in as_list(init)],
        "needs": as_list(row.get("needs")),
        "start": None if row.get("start") is None else read_script(row["start"], "start"),
        "example": None if example is None else read_script(example, "evaluation.example"),
        **decisive_fields(evaluation),
    }


def decisive_fields(evaluation: Row) -> dict[str, Any]:
    """The fields that check the outcome: `match` if present, otherwise the scripts of `check`."""
    wanted = evaluation.get("match")
    if isinstance(wanted, str):
        return {"answer": wanted}
    if isinstance(wanted, Mapping):
        if isinstance(wanted.get("regex"), str):
            return {"regex": wanted["regex"]}
        if isinstance(wanted.get("answer"), str):
            return {"answer": wanted["answer"], "strip": bool(wanted.get("strip", True))}
    if wanted is not None:
        raise ValueError(
            "`evaluation.match` must be text or an object with `answer` or `regex`, not "
            f"{shorten(repr(wanted))}"
        )
    checks = as_list(evaluation["check"]) if "check" in evaluation else []
    if not checks:
        raise ValueError("`evaluation` has neither `match` nor `check`: add one of them")
    return {
        "checks": [
            None if each is None else read_script(each, "evaluation.check") for each in checks
        ]
    }


def read_script(found: Any, column: str) -> dict[str, str]:
    """A script: a text in bash, or an object with code and a language."""
    if isinstance(found, str):
        return {"code": found}
    if isinstance(found, Mapping) and isinstance(found.get("code"), str):
        kept = {key: str(found[key]) for key in ("language", "missing") if found.get(key)}
        return {"code": found["code"], **kept}
    raise ValueError(
        f"`{column}` must be text or an object with `code` or `file`, not {shorten(repr(found))}"
    )


def as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [] if found is None else [found]


def first_label(found: Any) -> str:
    """The subject of an entry: its first label."""
    labels = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return str(labels[0]) if labels else ""


FORMS = (
    Form(
        OSEntry,
        "AgentBench os",
        ("description", "evaluation"),
        os_entry_fields,
        ("id", "create", "start", "example", "labels", "home", "folder", "needs", "explanation"),
        placed=with_files,
    ),
)
