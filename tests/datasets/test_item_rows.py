"""Items of any shape come back from a run's file as they were."""

import json
from dataclasses import dataclass, field

import pytest

import parley
from parley import Items, Role, UsageError
from parley.audit.audit import audit_run
from parley.config.selection import recorded_items, stored_items
from parley.datasets.item_rows import item_from_row, restore_value
from parley.rules.items.question import Question
from tests import games


@dataclass(frozen=True)
class Clue:
    text: str
    weight: int = 1


@dataclass(frozen=True)
class Case:
    id: int
    title: str | None
    facts: dict[str, int] = field(default_factory=dict)
    free: dict = field(default_factory=dict)
    first: Clue | None = None
    clues: list[Clue] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    pair: tuple[str, int] = ("", 0)
    by_number: dict[int, str] = field(default_factory=dict)
    size: int | str = 0
    loose: str = ""


CASES = [
    Case(7, "none"),
    Case(8, None, {"a": 1}, {"b": [1, {"c": None}]}, Clue("x"), [Clue("y", 2)], ["w"], ("p", 3)),
    Case(9, "t", by_number={1: "one"}, size="3", loose=None),
]


@dataclass(frozen=True)
class Solve(games.Game):
    """Played on cases."""

    roles = {"solver": Role()}
    items = Items(Case)

    async def play(self, referee, solver):
        said = await referee.ask(solver, f"{referee.item.words + ['?']} {referee.item.first}")
        return {solver: len(said) % 10}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.id))
def test_an_item_comes_back_from_a_record_as_it_was(case):
    ((name, row),) = stored_items([case])
    assert recorded_items([json.loads(row)], Solve()) == {name: case}


def test_a_run_on_such_items_is_resumed(tmp_path):
    partial = parley.run(Solve(), ["bot/null"], items=CASES, max_calls=1, store=tmp_path)
    assert partial.state == "stopped"
    whole = parley.resume(partial.path, task=Solve(), max_calls=10)
    assert whole.state == "done"
    assert len(whole.matches) == 3


def test_rows_of_a_dataset_may_have_the_same_shapes():
    row = {"id": 3, "title": "t", "clues": [{"text": "a"}], "first": {"text": "b", "weight": "2"}}
    case = item_from_row(row, Case, "line 1", 1)
    assert (case.id, case.clues, case.first) == (3, [Clue("a")], Clue("b", 2))
    with pytest.raises(UsageError, match=r"line 1.clues: 'txt'; did you mean 'text'"):
        item_from_row({"id": 3, "title": "t", "clues": [{"txt": "a"}]}, Case, "line 1", 1)
    with pytest.raises(UsageError, match=r"line 1.facts must be an object, not 3"):
        item_from_row({"id": 3, "title": "t", "facts": 3}, Case, "line 1", 1)


def test_what_no_record_can_keep_is_refused_before_the_run(tmp_path):
    with pytest.raises(UsageError, match="item 1: free cannot be stored with a run"):
        parley.run(Solve(), ["bot/null"], items=[Case(1, "t", free={"a": {1, 2}})], store=tmp_path)


def test_a_run_whose_items_have_numbers_as_ids_is_audited(tmp_path):
    result = parley.run(Solve(), ["bot/null"], items=CASES, store=tmp_path)
    found = audit_run(result.ref, __file__)
    assert found.breaches == []
    assert found.checked["replay"] == 3


def test_an_item_whose_field_has_another_type_is_damaged():
    """An item that was changed in a record: its class may fail with any error of types."""
    row = {"id": "a", "question": "?", "answer": {}}
    with pytest.raises(UsageError, match="strip"):
        restore_value(row, Question, "item a")
