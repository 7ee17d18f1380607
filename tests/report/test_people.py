"""The votes of people in reports: the column of the KIEval table, and the section of a run."""

import json

import pytest

import parley
from parley.annotation.pair_ballots import cast_vote, register_annotator
from parley.annotation.study import prepare_study, summarise_votes
from parley.report.build import build_report
from parley.results.human_votes import read_human_votes
from parley.store import open_votes

JUDGES = {"interactor": "bot/interactor", "evaluator": "bot/evaluator"}


def interviews(folder, shares, items=8):
    models = {
        name: {"model": "bot/candidate", "knowledge": share} for name, share in shares.items()
    }
    settings = {"items": items, "rounds": 1, "verify": "no", "seed": 1, "store": folder}
    return parley.run("kieval", models=models, roles=JUDGES, **settings).ref


def vote(refs, name, agree=lambda number: True):
    """A person who prefers the higher score where `agree` says so."""
    with open_votes(refs) as votes:
        study = prepare_study(votes, refs, 20, 1, False)
        who = register_annotator(votes, study, name)
        for number, pair in votes.pairs(study).items():
            higher = (pair.a.score > pair.b.score) is agree(number)
            cast_vote(votes, study, number, who, "A" if higher else "B")
        return summarise_votes(votes, study)


@pytest.fixture
def interviewed(tmp_path):
    return interviews(tmp_path, {"strong": 1.0, "weak": 0.0})


def test_without_votes_nothing_is_shown(interviewed):
    text = build_report([interviewed]).render("html")
    assert "Human" not in text
    assert "What people said" not in text
    assert json.loads(build_report([interviewed]).render("json"))["human"] is None


def test_one_person_is_enough_for_the_column_and_the_section(interviewed):
    said = vote([interviewed], "Ann", lambda number: number > 1)
    report = build_report([interviewed])
    data = json.loads(report.render("json"))["human"]
    assert data["annotators"] == 1
    assert data["agreement"] == {
        key: value for key, value in said["agreement"][0].items() if key != "dataset"
    }
    n = said["pairs"]["drawn"]
    assert n >= 5
    assert data["agreement"]["value"] == pytest.approx((n - 1) / n)
    assert data["agreement"]["low"] < data["agreement"]["value"] <= data["agreement"]["high"]
    rates = {each["model"]: each["value"] for each in data["models"]}
    assert rates == pytest.approx({"strong": (n - 1) / n, "weak": 1 / n})
    text = report.render("text")
    (row,) = [line for line in text.splitlines() if line.startswith("strong") and "." in line][:1]
    assert f"{100 * (n - 1) / n:.1f}" in row
    assert "Human: share of settled pairs" in text
    assert "1 person gave" in text
    assert "How far people agree with each other is unknown" in text
    assert "What people said" in report.render("html")
    flat = report.render("csv")
    assert "human win rate" in flat
    assert "human agreement" in flat


def test_two_people_settle_pairs_and_a_change_of_mind_counts(interviewed):
    vote([interviewed], "Ann")
    vote([interviewed], "Bob", lambda number: number > 1)
    found = read_human_votes({interviewed.id: interviewed})
    assert found.annotators == 2
    assert found.agreement.value == 1.0
    assert found.agreement.dropped == 1  # the pair on which they differ
    assert "unknown" not in found.describe()


def test_votes_on_pairs_across_runs_count_only_if_all_runs_are_reported(tmp_path):
    one = interviews(tmp_path, {"strong": 1.0})
    other = interviews(tmp_path, {"weak": 0.0})
    vote([one, other], "Ann")
    assert read_human_votes({one.id: one}) is None
    report = build_report([one, other])
    assert "Human" in report.render("text")
    assert "What people said about pairs from several runs" in report.render("html")
    third = interviews(tmp_path, {"fair": 0.5})
    page = build_report([one, third]).render("html")
    assert "What people said" not in page


def test_votes_on_translations_have_a_section(tmp_path):
    models = {
        name: {"model": "bot/translator", "strength": share}
        for name, share in (("top", 0.9), ("low", 0.1))
    }
    ref = parley.run("translation", models=models, items=3, seed=1, store=tmp_path).ref
    vote([ref], "Ann")
    page = build_report([ref]).render("html")
    assert "What people said" in page
    assert "1 person gave" in page


def test_a_file_of_votes_that_cannot_be_read_is_said_and_stops_no_report(interviewed, tmp_path):
    (tmp_path / "annotations.sqlite").write_bytes(b"no database, just words" * 100)
    report = build_report([interviewed])
    assert any("votes of people are left out" in line for line in json.loads(
        report.render("json"))["cautions"])  # fmt: skip
    assert "The votes of people are left out" in report.render("html")
