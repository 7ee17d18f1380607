"""Run files from anybody: a file that was damaged or changed is refused, or the audit says so."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import parley
from parley import Result
from parley.audit.audit import audit_run
from parley.errors import ParleyError, StoreError
from parley.store import find_run, read_run
from tests.fuzz.bounded import few_or_many, of_size

# what is kept of a run, and no digest of it: who plays it and how endpoints answer meanwhile, ids
# that only give an order, and what analyses computed
LEFT_OUT = {("runs", name) for name in ("owner", "token", "heartbeat", "heartbeats", "health")}
LEFT_OUT.add(("calls", "id"))
VALUES = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=10)
    | st.binary(max_size=10)
    | st.sampled_from(["[]", "{}", "null", "[[]]", '{"a": 1}', "done", "stopped"])
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small run with violations, notes and failed attempts."""
    store = tmp_path_factory.mktemp("runs")
    models = {"anna": "bot/altruist", "bert": lambda view: "no", "carl": "bot/random"}
    return parley.run("public_goods", models, repeats=1, rounds=2, store=store).path


def cells_of(path):
    """Every cell of a run's file by table, column and row."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if name not in ("part_results",) and not name.startswith("sqlite_")
        ]
        found = []
        for table in sorted(tables):
            keys = {row[1]: row[5] for row in connection.execute(f"PRAGMA table_info({table})")}
            (count,) = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
            found += [
                (table, column, row)
                for column in keys
                if (table, column) not in LEFT_OUT
                for row in range(count)
            ]
    return found


def read_all(path):
    """Everything that a reader gives of a run."""
    with read_run(find_run(path)) as reader:
        for match in reader.matches.read():
            (
                reader.messages.of(match.number),
                reader.effects.of(match.number),
                reader.scores.of(match.number),
            )
        (
            list(reader.scores.read()),
            list(reader.notes.read()),
            list(reader.violations.read()),
            reader.run.items(),
        )
        (
            reader.usage.by_model(),
            reader.run.prices(),
            reader.run.spent_at_most(),
            reader.run.unanswered(),
        )


def change_cell(path, cell, value):
    """Whether a cell of a file took another value."""
    table, column, row = cell
    with closing(sqlite3.connect(path)) as connection:
        kept = connection.execute(f"SELECT * FROM {table}").fetchall()
        keys = [each[1] for each in connection.execute(f"PRAGMA table_info({table})")]
        where = " AND ".join(f'"{key}" IS ?' for key in keys)
        statement = f'UPDATE {table} SET "{column}" = ? WHERE {where}'
        try:
            with connection:
                connection.execute(statement, (value, *kept[row]))
        except (sqlite3.Error, UnicodeEncodeError, OverflowError):
            return False
        return connection.execute(f"SELECT * FROM {table}").fetchall() != kept


@few_or_many
def test_a_cell_that_was_changed_is_found(sized, run, tmp_path):
    cells = cells_of(run)
    path = tmp_path / "changed.parley"

    @of_size(sized)
    @given(st.sampled_from(cells), VALUES)
    @example(("rounds", "first", 0), 9.3e18)  # found
    @example(("matches", "item", 0), 0)  # found
    @example(("rounds", "messages", 0), 0)  # found
    def check(cell, value):
        shutil.copy(run, path)
        if not change_cell(path, cell, value):
            return
        try:
            found = audit_run(find_run(path))
        except ParleyError:
            return
        old = cell[:2] == ("runs", "origin") and value is None
        assert found.breaches or (old and "digest" in found.unchecked)

    check()


def test_a_table_whose_definition_is_no_text_is_refused(run, tmp_path):
    """Found: SQLite then quotes it in its message, which cannot be decoded."""
    path = tmp_path / "damaged.parley"
    path.write_bytes(run.read_bytes().replace(b"CREATE TABLE runs", b"CREATE TABL\x80 runs"))
    with pytest.raises(StoreError):
        read_all(path)


@few_or_many
def test_a_damaged_file_is_read_or_refused(sized, run, tmp_path):
    whole = run.read_bytes()
    path = tmp_path / "damaged.parley"
    damage = st.lists(
        st.tuples(st.integers(0, len(whole) - 1), st.binary(min_size=1, max_size=16)),
        min_size=1,
        max_size=8,
    )

    @of_size(sized)
    @given(damage, st.integers(0, len(whole)) | st.none())
    def check(places, cut):
        spoilt = bytearray(whole)
        for place, bytes_ in places:
            spoilt[place : place + len(bytes_)] = bytes_
        path.write_bytes(spoilt[:cut])
        try:
            read_all(path)
            audit_run(find_run(path))
            Result(path).render()
        except ParleyError:
            return

    check()
