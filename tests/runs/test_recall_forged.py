"""Run files of the plan `evolve` that somebody changed and sealed anew."""

import shutil
import sqlite3
from dataclasses import replace

import pytest

from parley.audit.audit import audit_run
from parley.errors import StoreError
from parley.results.transcript import TranscriptReader
from parley.rules.pool import Seat
from parley.store import find_run, read_run
from tests.resealed import reseal
from tests.runs.test_recall import evolve, questions


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return evolve(tmp_path_factory.mktemp("forged"), count=4, evolve={"stages": 1})


def forge(result, folder, statement):
    copy = folder / "forged.parley"
    shutil.copy(result.path, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute(statement)
        reseal(connection)
    connection.close()
    return find_run(copy)


@pytest.mark.parametrize(
    "change", ["stage = -3", "arm = 'nope'", "arm = ''", "arm = '/probe'", "stage = 0"]
)
def test_a_stage_that_the_run_does_not_have_is_damage(played, tmp_path, change):
    ref = forge(played, tmp_path, f"UPDATE matches SET {change} WHERE number = 5")
    with read_run(ref) as reader, pytest.raises(StoreError, match="match 5 is in stage"):
        list(reader.matches.read())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stages", "1000000000"),
        ("stages", "'many'"),
        ("k", "-1"),
        ("window", "0"),
        ("held_out", "77"),
        ("memory", "'zz'"),
        ("zz", "1"),
    ],
)
def test_settings_that_nobody_could_have_given_are_refused(played, tmp_path, key, value):
    place = f"$.evolve.arms.evolve.{key}"
    change = f"UPDATE runs SET config = json_set(config, '{place}', {value})"
    with pytest.raises(StoreError, match="configuration of the run cannot be read: evolve"):
        read_run(forge(played, tmp_path, change)).close()


def test_what_was_recalled_in_the_standard_stage_stays_out_of_the_tables(played, tmp_path):
    from parley import Result

    change = "UPDATE recalled SET match = 1 WHERE match = 5"
    ref = forge(played, tmp_path, change)
    assert Result(ref).part("evolve").stages
    assert any(
        "this seat has no memory in this stage" in each.detail for each in audit_run(ref).breaches
    )


def test_audit_finds_that_what_was_shown_is_no_longer_on_record(played, tmp_path):
    ref = forge(played, tmp_path, "DELETE FROM recalled")
    found = audit_run(ref).breaches
    assert {each.kind for each in found} == {"recalled"}
    assert all("that are not in the record" in each.detail for each in found)


def test_audit_finds_that_one_seat_has_no_memory_on_record(played, tmp_path):
    ref = forge(played, tmp_path, "DELETE FROM recalled WHERE match = 5")
    found = audit_run(ref).breaches
    assert {(each.kind, each.match) for each in found} == {("recalled", 5)}
    assert any("has one for other seats of this stage" in each.detail for each in found)


def test_audit_says_once_that_too_much_was_shown(played, tmp_path):
    many = ",".join(['[1, "student", 0.1]'] * 5000)
    facts = f'{{"shown": [{many}], "k": 2, "dropped": 0, "shuffle": ""}}'
    ref = forge(played, tmp_path, f"UPDATE recalled SET shown = '{facts}' WHERE match = 5")
    found = audit_run(ref).breaches
    assert any("was shown 5,000 experiences, but the limit is 2" in each.detail for each in found)
    assert len(found) < 10


def test_an_id_of_another_run_neither_replaces_nor_is_held_out(tmp_path):
    """Two runs number their questions alike, and ask different ones."""
    first = evolve(tmp_path, {"m": "bot/student"}, count=8, evolve={"stages": 1})
    settings = {"stages": 2, "transfer": str(first.path), "k": 50, "held_out": 0.5}
    second = evolve(tmp_path, {"m": "bot/student"}, items=questions(8, seed=5), evolve=settings)
    with read_run(second.ref) as reader:
        transferred = len(reader.experiences.transferred())
        seen = [
            {each.match for each in row.shown if each.match < 0}
            for row in reader.experiences.recalled()
        ]
    assert transferred
    assert all(len(each) == transferred for each in seen)
    assert audit_run(second.ref).breaches == []


def test_an_experience_that_was_never_transferred_is_damage(played, tmp_path):
    facts = '{"shown": [[-9, "student", 0.1]], "k": 2, "dropped": 0, "shuffle": ""}'
    ref = forge(played, tmp_path, f"UPDATE recalled SET shown = '{facts}' WHERE match = 5")
    with read_run(ref) as reader, pytest.raises(StoreError, match="was shown experience 9"):
        TranscriptReader(reader, str).read_seat(reader.matches.find(5), Seat("student"))


def test_audit_finds_the_same_item_where_it_is_masked(tmp_path):
    result = evolve(tmp_path, {"m": lambda view: "A"}, items=same_answer(4), evolve={"mask": True})
    change = (
        """UPDATE recalled SET shown = '{"shown": [[1, "student", 0.1]], "k": 2, """
        """"dropped": 0, "shuffle": ""}' WHERE match = 5"""
    )
    found = audit_run(forge(result, tmp_path, change)).breaches
    assert any("the same item are masked" in each.detail for each in found)


def same_answer(count):
    return [replace(each, answer="A") for each in questions(count)]


def test_an_experience_without_turns_is_damage(tmp_path):
    items = same_answer(3)
    first = evolve(tmp_path, {"m": lambda view: "A"}, items=items, evolve={"stages": 1})
    settings = {"stages": 1, "keep": "all", "transfer": str(first.path)}
    second = evolve(tmp_path, {"m": lambda view: "A"}, items=items, evolve=settings)
    change = "UPDATE transferred SET experience = json_set(experience, '$.turns', json('[]'))"
    ref = forge(second, tmp_path, change)
    with read_run(ref) as reader, pytest.raises(StoreError, match="a turn must have a question"):
        reader.experiences.transferred()
