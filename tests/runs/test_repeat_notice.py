"""The notice that all models are deterministic: matches that are played now and matches on record
are compared with each other."""

import pytest

import parley
from parley.runs.repeat_notice import track_repeats
from parley.statistics.identical_repeats import RepeatTracker
from parley.store import read_run

BOTS = {"a": "bot/random", "b": "bot/random", "c": "bot/random"}


@pytest.fixture
def added(monkeypatch):
    """What the notice has seen of each match."""
    found = {}
    monkeypatch.setattr(
        RepeatTracker,
        "add",
        lambda self, block, repeat, exchanges: found.update({(block, repeat): sorted(exchanges)}),
    )
    return found


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("public_goods", {"feedback": "investments"}),
        ("word_guessing", {"items": 4}),
        ("kieval", {"items": 2, "roles": dict.fromkeys(("interactor", "evaluator"), "bot/random")}),
    ],
)
def test_a_match_looks_the_same_while_it_is_played_and_on_record(task, options, added, tmp_path):
    models = {"a": "bot/random"} if task == "kieval" else BOTS
    result = parley.run(task, models, store=tmp_path, seed=3, **options)
    played = dict(added)
    assert played
    assert all(played.values())
    added.clear()
    with read_run(result.ref) as reader:
        track_repeats(reader)
    assert added
    assert added == {match: played[match] for match in added}
