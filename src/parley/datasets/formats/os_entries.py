"""Command-line tasks in AgentBench's format: a description, scripts that prepare the machine, and
the evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parley.datasets.files import LocatedRow
from parley.datasets.formats import Form, Row
from parley.datasets.os_folders import script_folders
from parley.errors import describe_type
from parley.rules.items import OSEntry
from parley.tables import shorten

# In the edition of inspect-evals, tasks start in the home directory of a separate user.
INSPECT, INSPECT_HOME = "agent_bench_os", "/home/agent"


def with_files(found: LocatedRow) -> Row:
    """Replace references to script files in a row by the scripts."""
    row = dict(found.row)
    if isinstance(row.get("create"), Mapping):
        row["create"] = inline_scripts(row["create"], found)
    for key in ("evaluation", "start", "example"):
        row[key] = inline_scripts(row.get(key), found)
    if found.file.startswith(INSPECT):
        row = {"home": INSPECT_HOME, "folder": INSPECT_HOME, **row}
    return row


def inline_scripts(value: Any, found: LocatedRow) -> Any:
    """Replace every `{"file": …}` by the code of that file, or mark it as missing."""
    if isinstance(value, list):
        return [inline_scripts(each, found) for each in value]
    if not isinstance(value, Mapping):
        return value
    if isinstance(name := value.get("file"), str):
        kept = {"language": value["language"]} if value.get("language") else {}
        for folder in () if found.path is None else script_folders(found.path):
            place = (folder / name).resolve()
            if place.is_relative_to(folder.resolve()) and place.is_file():
                found.check_path(place)
                return {"code": place.read_text(encoding="utf-8", errors="replace"), **kept}
        return {"code": "", "missing": name, **kept}
    return {key: inline_scripts(each, found) for key, each in value.items()}


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
        ("id", "create", "start", "example", "labels", "home", "folder", "explanation"),
        placed=with_files,
    ),
)
