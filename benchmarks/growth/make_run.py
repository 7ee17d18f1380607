"""Make a run of many matches: play a small run with bots, then copy its matches.

    python benchmarks/growth/make_run.py FOLDER [--task public_goods] [--matches 1000000]

Each copy of the small run has blocks of its own: the next repeats or, in a task with items, copies
of the items under new names. Calls, messages, notes, violations and scores are those of the played
matches, so results are computed as in a real run. The digests of copies are wrong, so an audit of
digests fails.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import parley

COPIED = ("calls", "effects", "rounds", "scores", "notes", "violations")  # tables


def bots(name: str, option: str, *values: float) -> dict[str, dict[str, Any]]:
    """Models that are one bot with different settings."""
    return {f"{name}-{value:g}": {"model": f"bot/{name}", option: value} for value in values}


@dataclass(frozen=True)
class Played:
    """A small run whose matches are copied."""

    models: Mapping[str, Any]
    options: Mapping[str, Any]
    roles: Mapping[str, Any] = field(default_factory=dict)


JUDGES = {"judge": {"first": "bot/judge", "second": "bot/judge"}}
RUNS = {
    # three calls a match
    "public_goods": Played(
        {name: {"model": f"bot/{name}"} for name in ("free-rider", "altruist", "gradual")}
        | {"random": {"model": "bot/random"}},
        {"plan": "cycles", "seats": 3, "repeats": 25, "rounds": 1},
    ),
    "word_guessing": Played(
        bots("guesser", "strength", 0.3, 0.5, 0.7, 0.9),
        {"plan": "cycles", "seats": 4, "items": 20, "rounds": 2},
    ),
    "idiom_solitaire": Played(bots("speaker", "strength", 0.5, 0.7, 0.9), {"repeats": 10}),
    "qa": Played(bots("student", "knowledge", 0.2, 0.4, 0.6, 0.8), {"items": 40}),
    "kieval": Played(
        bots("candidate", "knowledge", 0.3, 0.6, 0.9),
        {"items": 10, "rounds": 2},
        {"interactor": "bot/interactor", "evaluator": "bot/evaluator"},
    ),
    "translation": Played(
        bots("translator", "strength", 0.3, 0.6, 0.8, 1.0), {"items": 10}, JUDGES
    ),
    "code_review": Played(bots("coder", "strength", 0.3, 0.6, 0.9), {"items": 5}, JUDGES),
}


def make_run(folder: Path, task: str = "public_goods", matches: int = 1_000_000) -> Path:
    """Play a run and copy its matches; returns the path of its file."""
    played = RUNS[task]
    result = parley.run(
        task, played.models, roles=played.roles, store=folder, seed=1, **played.options
    )
    path = Path(result.ref.location)
    with closing(sqlite3.connect(path)) as connection, connection:
        copy_with_blocks(connection, matches)
    return path


def copy_with_blocks(connection: sqlite3.Connection, matches: int) -> None:
    """Fill the file of a run with copies that have blocks and items of their own."""
    (repeats,) = connection.execute("SELECT MAX(repeat) FROM matches").fetchone()
    items = connection.execute("SELECT COUNT(*) FROM items").fetchone()[0]
    new_item = "item || '#' || n"
    changed = {
        "item": new_item,
        "block": new_item if items else f"CAST(repeat + n * {repeats} AS TEXT)",
        "repeat": "repeat" if items else f"repeat + n * {repeats}",
        "seed": "seed + n",
    }
    copy_matches(connection, matches, changed)
    connection.execute(
        "INSERT INTO items (id, number, data) SELECT id || '#' || n, number + n * "
        f"{items}, json_set(data, '$.id', id || '#' || n) FROM copies, items "
        "WHERE id || '#' || n IN (SELECT item FROM matches)"
    )


def copy_matches(
    connection: sqlite3.Connection, matches: int, changed: Mapping[str, str] | None = None
) -> None:
    """Fill the file of a run up to this many matches with copies of those that it has. `changed`
    are columns of matches that differ, in SQL with the number `n` of the copy."""
    (last,) = connection.execute("SELECT MAX(number) FROM matches").fetchone()
    connection.execute(
        "CREATE TEMP TABLE copies AS WITH RECURSIVE series(n) AS (VALUES (1) UNION ALL "
        f"SELECT n + 1 FROM series WHERE n < {(matches - 1) // last}) SELECT n FROM series"
    )
    for table in COPIED:
        copy_rows(connection, table, "match", last, matches, {})
    copy_rows(connection, "matches", "number", last, matches, changed or {})
    connection.execute("UPDATE runs SET planned = (SELECT COUNT(*) FROM matches)")


def copy_rows(
    connection: sqlite3.Connection,
    table: str,
    number: str,
    last: int,
    matches: int,
    changed: Mapping[str, str],
) -> None:
    """Copy the rows of a table for every copy of its match."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    rest = [name for name in columns if name not in (number, "id")]
    values = ", ".join(changed.get(name, name) for name in rest)
    connection.execute(
        f"INSERT INTO {table} ({number}, {', '.join(rest)}) SELECT {number} + n * {last}, {values} "
        f"FROM copies, {table} WHERE {number} <= {last} AND {number} + n * {last} <= {matches} "
        f"ORDER BY n, {number}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", choices=sorted(RUNS), default="public_goods")
    parser.add_argument("--matches", type=int, default=1_000_000)
    given = parser.parse_args()
    print(make_run(given.folder, given.task, given.matches))
