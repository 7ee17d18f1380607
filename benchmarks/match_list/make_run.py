"""Make a run of many matches: play a small run with bots, then copy its matches.

    python benchmarks/match_list/make_run.py FOLDER [--matches 100000]

The copies have the calls, messages and notes of real matches. Scores vary a little. One match in 50
is aborted, and one in seven has a violation. Digests of copies are wrong: an audit refuses the run.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.growth.make_run import copy_matches

import parley
from parley.store.sqlite.schema import DERIVED

NAME = "many-matches"
MODELS = {
    "strong": {"model": "bot/translator"},
    "good": {"model": "bot/translator", "strength": 0.8},
    "fair": {"model": "bot/translator", "strength": 0.6},
    "weak": {"model": "bot/translator", "strength": 0.3},
}
ROLES = {"judge": {"first": "bot/judge", "second": "bot/judge"}}
CHANGES = (
    # judges differ in one match of three
    "UPDATE notes SET facts = json_replace(facts, '$.votes.\"judge.1\".translator.score', 1) "
    "WHERE kind = 'votes' AND match % 3 = 0",
    "INSERT INTO violations (match, number, round, seat, attempt, kind, detail, outcome) "
    "SELECT number, 0, 1, 'translator', 0, 'format', 'no text', 'retried' FROM matches "
    "WHERE number % 7 = 0",
    "UPDATE scores SET value = value * (1 - jitter() / 5) WHERE metric != 'judge'",
    "DELETE FROM scores WHERE match % 50 = 0",
    "UPDATE calls SET tokens_in = 200 + match % 800, tokens_out = 50 + match % 90",
    "UPDATE matches SET began = 1.8e9 + number, ended = 1.8e9 + number + 5 * jitter(), "
    "state = CASE number % 50 WHEN 0 THEN 'aborted' ELSE state END",
    "UPDATE matches AS m SET " + ", ".join(f"{name} = {sql}" for name, sql in DERIVED.items()),
)


def make_run(folder: Path, matches: int) -> Path:
    """Play a run and multiply its matches; returns the path of its file."""
    played = parley.run("translation", MODELS, roles=ROLES, store=folder, name=NAME, seed=1)
    path = Path(played.ref.location)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("jitter", 0, random.Random(1).random)
        copy_matches(connection, matches)
        for change in CHANGES:
            connection.execute(change)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--matches", type=int, default=100_000)
    given = parser.parse_args()
    print(make_run(given.folder, given.matches))
