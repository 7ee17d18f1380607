"""People compare interviews: the draw, who sees what, votes that last, the figures, nothing that
steers a terminal."""

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import parley
from parley import ParleyError, UsageError
from parley.annotation.pair_ballots import (
    HOLD_SECONDS,
    cast_vote,
    find_invitation,
    invite_annotator,
    offer_pair,
    register_annotator,
)
from parley.annotation.pair_sampling import collect_conversations, list_pairs, sample_pairs
from parley.annotation.sheets import format_of_task, make_sheet
from parley.annotation.study import open_runs, prepare_study, summarise_votes
from parley.cli.annotate_tables import result_tables
from parley.cli.terminal import wrap_text
from parley.errors import StoreError
from parley.match.protocol import Reply
from parley.match.record import RecordedCall
from parley.results.human_votes import votes_by_name
from parley.rules.pool import Seat
from parley.statistics.preferences import (
    Ballot,
    ConversationPair,
    ConversationSide,
    agreement_with_scores,
    kappa_between,
    kappa_of_first_votes,
    majority_choice,
    votes_needed,
    win_rate,
)
from parley.store import find_run, read_run
from parley.store.sqlite.folder import VOTES_FILE
from parley.store.sqlite.votes_file import SqliteVotes
from parley.store.types import RunRef
from parley.tables import make_visible, text_width
from parley.tasks.kieval.annotation import SHEET, write_interview
from parley.tasks.kieval.bots import KNOWS
from parley.tasks.kieval.rule import ASPECTS
from tests.cli.test_cli import parley as command

ROLES = {"interactor": "bot/interactor", "evaluator": "bot/evaluator"}
BOTS = {
    name: {"model": "bot/candidate", "knowledge": share}
    for name, share in (("a", 0.9), ("b", 0.5), ("c", 0.1))
}


def find_invited(votes, token):
    """The study and the person with this secret; None if nobody has it, or if it has ended."""
    found = find_invitation(votes, token)
    return None if found is None or found.ended else (found.study, found.who)


def interviewed(store, models=BOTS, items=8, **more):
    return parley.run(
        "kieval",
        models=models,
        roles=ROLES,
        items=items,
        store=store,
        verify="no",
        **{"seed": 1, "rounds": 2, **more},
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A store with a run of interviews."""
    place = tmp_path_factory.mktemp("interviews")
    interviewed(place / "runs", name="talk")
    return place


@pytest.fixture
def place(played, tmp_path):
    """A fresh copy of that store, without votes."""
    (tmp_path / "runs").mkdir()
    for path in (played / "runs").glob("*.parley"):
        (tmp_path / "runs" / path.name).write_bytes(path.read_bytes())
    return tmp_path


def terminal(place, name, typed, *more, run="talk"):
    """A person at the terminal, who types these lines."""
    return subprocess.run(
        [sys.executable, "-m", "parley", "annotate", "vote", run, "--annotator", name,
         *map(str, more)],
        cwd=place, input=typed, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def draw(place, *more):
    """Draw pairs of the run."""
    return command("annotate", "draw", "talk", *more, cwd=place)


def refs_in(place):
    return [find_run(path) for path in (place / "runs").glob("*.parley")]


def studied(place, pairs=6, ties=False, seed=0):
    """The file of votes of the one run, with pairs drawn."""
    refs = refs_in(place)
    votes = SqliteVotes(place / "runs" / VOTES_FILE)
    return votes, prepare_study(votes, refs, pairs, seed, ties)


# ── the draw ──


def some_pairs(datasets, models, items):
    """All pairs of a made-up set of interviews."""
    return [
        ConversationPair(
            f"d{d}",
            f"q{i}",
            ConversationSide("r", 1000 * d + 100 * m + i, f"m{m}", float(m)),
            ConversationSide("r", 1000 * d + 100 * n + i, f"m{n}", n + 0.5),
        )
        for d in range(datasets)
        for i in range(items)
        for m in range(models)
        for n in range(m + 1, models)
    ]


@settings(max_examples=60)
@given(
    st.integers(1, 3),
    st.integers(2, 5),
    st.integers(1, 6),
    st.integers(1, 80),
    st.integers(0, 5),
    st.integers(0, 20),
)
def test_a_draw_is_balanced_has_no_pair_twice_and_is_the_same_for_a_seed(
    datasets, models, items, count, seed, first
):
    possible = some_pairs(datasets, models, items)
    found = sample_pairs(possible, count, seed)
    assert found == sample_pairs(possible, count, seed)
    assert len(found) == min(count, len(possible))
    assert len({frozenset((pair.a, pair.b)) for pair in found}) == len(found)
    assert {frozenset((pair.a, pair.b)) for pair in found} <= {
        frozenset((pair.a, pair.b)) for pair in possible
    }
    by_dataset = Counter({f"d{d}": 0 for d in range(datasets)})
    by_dataset.update(pair.dataset for pair in found)
    assert max(by_dataset.values()) - min(by_dataset.values()) <= 1
    for dataset in by_dataset:
        met = Counter(
            {frozenset((f"m{m}", f"m{n}")): 0 for m in range(models) for n in range(m + 1, models)}
        )
        met.update(frozenset(pair.models) for pair in found if pair.dataset == dataset)
        assert max(met.values()) - min(met.values()) <= 1
    more = sample_pairs(
        possible, count, seed, found[:first]
    )  # later draws go on from what there is
    assert not {frozenset((pair.a, pair.b)) for pair in more} & {
        frozenset((pair.a, pair.b)) for pair in found[:first]
    }


def test_sides_are_shuffled():
    found = sample_pairs(some_pairs(2, 4, 60), 600, 1)
    higher = sum(pair.a.score > pair.b.score for pair in found)
    assert 240 < higher < 360  # five standard deviations


def test_pairs_are_of_different_models_on_one_question_with_different_scores(played):
    with open_runs(refs_in(played)) as runs:
        found = collect_conversations(runs, "kieval")
        possible = list_pairs(found)
    assert len(found) == 24
    scores = {(each.side.match): (each.item, each.side.score) for each in found}
    for pair in possible:
        assert pair.a.model != pair.b.model
        assert scores[pair.a.match][0] == scores[pair.b.match][0] == pair.item
        assert pair.a.score != pair.b.score
    same = sum(
        one.item == other.item
        and one.side.model < other.side.model
        and one.side.score == other.side.score
        for one in found
        for other in found
    )
    assert len(possible) == 24 - same


def test_runs_under_one_rule_are_compared_with_each_other_and_others_are_not(tmp_path):
    first = interviewed(tmp_path, {"a": BOTS["a"]}, 4).ref
    second = interviewed(tmp_path, {"b": BOTS["c"]}, 4).ref
    other_rule = interviewed(tmp_path, {"c": BOTS["c"]}, 4, scale="linear").ref
    same_alias = interviewed(tmp_path, {"a": BOTS["c"]}, 4).ref
    with open_runs([second, first]) as runs:
        assert {
            frozenset(pair.models) for pair in list_pairs(collect_conversations(runs, "kieval"))
        } == {frozenset("ab")}
    with open_runs([first, other_rule]) as runs:
        assert list_pairs(collect_conversations(runs, "kieval")) == []
    with open_runs([first, same_alias]) as runs:
        (models,) = {
            frozenset(pair.models) for pair in list_pairs(collect_conversations(runs, "kieval"))
        }
    assert models == {f"a@{first.id}", f"a@{same_alias.id}"}
    with (
        SqliteVotes(tmp_path / VOTES_FILE) as votes,
        pytest.raises(UsageError, match="a pair needs finished conversations of two models"),
    ):
        prepare_study(votes, [first, other_rule], 5, 0, False)


def test_interviews_that_were_judged_again_are_not_taken_twice(tmp_path):
    path = interviewed(tmp_path, items=2).path
    again = parley.rejudge(
        path, {"evaluator": {"other": {"model": "bot/evaluator", "noise": 0.5}}}, store=tmp_path
    ).path
    third = parley.rejudge(
        again, {"evaluator": {"last": {"model": "bot/evaluator", "noise": 0.4}}}, store=tmp_path
    ).path
    for other in (again, third):
        with (
            open_runs([find_run(path), find_run(other)]) as runs,
            pytest.raises(UsageError, match="judged by different judges"),
        ):
            collect_conversations(runs, "kieval")
    with open_runs([find_run(again)]) as runs:
        assert list_pairs(collect_conversations(runs, "kieval"))


def test_only_tasks_with_a_sheet_can_be_annotated_and_nothing_is_left_behind(tmp_path):
    command(
        "run",
        "public_goods",
        "-m",
        "bot/free-rider",
        "-m",
        "bot/altruist",
        "--repeats",
        2,
        cwd=tmp_path,
    )
    done = command("annotate", "draw", "last", cwd=tmp_path, code=2)
    assert "choose a run of code_review, kieval, qa, translation" in done.err
    assert not (tmp_path / "runs" / VOTES_FILE).exists()


def test_what_was_drawn_stays_and_more_can_be_drawn(place):
    votes, study = studied(place, 4, seed=5)
    with votes:
        before = votes.pairs(study)
        refs = refs_in(place)
        assert prepare_study(votes, refs, None, None, None) == study
        assert prepare_study(votes, refs, 6, 5, None) == study
        assert list(votes.pairs(study).items())[:4] == list(before.items())
        assert len(votes.pairs(study)) == 6
        votes.hold_pair(study, votes.add_annotator(study, "Ann"), 1, 60)
        for wrong in ((5, None, None), (None, 6, None), (None, None, True)):
            with pytest.raises(UsageError, match="somebody has seen a pair"):
                prepare_study(votes, refs, *wrong)
        prepare_study(votes, refs, 1000, None, None)
        everything = votes.pairs(study)
        prepare_study(votes, refs, 1000, None, None)
        assert votes.pairs(study) == everything


def test_pairs_are_drawn_again_until_somebody_has_seen_one(place):
    votes, study = studied(place, 6, seed=0)
    with votes:
        refs, before = refs_in(place), votes.pairs(study)
        token = invite_annotator(votes, study, "Ann")
        fewer = prepare_study(votes, refs, 4, None, None)
        assert (fewer, len(votes.pairs(fewer))) == (study, 4)
        other = prepare_study(votes, refs, 6, 3, True)
        assert (other.id, other.seed, other.ties) == (study.id, 3, True)
        assert votes.find_study(other.runs) == other
        assert len(votes.pairs(other)) == 6
        assert votes.pairs(other) != before
        assert find_invited(votes, token)[1].name == "Ann"  # invitations stay
        back = prepare_study(votes, refs, None, 0, None)
        assert votes.pairs(back) == before
        person = votes.add_annotator(back, "Ann")
        votes.skip_pair(back, person, 1)
        assert votes.reset_study(back, 1, False) is None
        assert votes.pairs(back) == before


# ── who sees what ──


class People:
    """A study in a file of its own, at which people sit in any order."""

    def __init__(self, folder, pairs, ties):
        self.votes = SqliteVotes(Path(folder) / VOTES_FILE)
        self.study = self.votes.create_study(["r"], 0, ties)
        self.votes.add_pairs(self.study, some_pairs(1, 2, pairs), 0)


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["look", "look", "look", "A", "B", "tie", "skip", "leave"]),
    ),
    max_size=60,
)


@settings(max_examples=80)
@given(st.integers(1, 3), st.booleans(), STEPS)
def test_two_votes_a_third_by_somebody_else_and_nobody_sees_a_pair_twice(pairs, ties, steps):
    with tempfile.TemporaryDirectory() as folder:
        people = People(folder, pairs, ties)
        with (votes := people.votes):
            study, looks, seen = people.study, {}, set()
            everybody = [register_annotator(votes, study, f"person {n}") for n in range(4)]
            for who, act in steps:
                me = everybody[who]
                if act == "look" and who not in looks:
                    found = offer_pair(votes, study, me)
                    if found is not None:
                        given = votes_by_name(votes, study)[found]
                        others = {person for person, pair in looks.items() if pair == found}
                        assert me.name not in given
                        assert votes_needed(list(given.values())) > len(
                            others
                        )  # nobody looks in vain
                        assert (who, found) not in seen
                        looks[who] = found
                elif act == "skip" and who in looks:
                    if (found := offer_pair(votes, study, me, {looks.pop(who)})) is not None:
                        looks[who] = found
                elif act == "leave" and who in looks:
                    votes.release_pair(study, me)
                    del looks[who]
                elif act in ("A", "B", "tie") and who in looks:
                    if act == "tie" and not ties:
                        with pytest.raises(UsageError):
                            cast_vote(votes, study, looks[who], me, act)
                        continue
                    assert cast_vote(votes, study, looks[who], me, act) == "recorded"
                    assert cast_vote(votes, study, looks[who], me, act) == "same"
                    with pytest.raises(UsageError, match="use --change"):
                        cast_vote(votes, study, looks[who], me, "B" if act == "A" else "A")
                    seen.add((who, looks.pop(who)))
            for given in votes_by_name(votes, study).values():
                choices = list(given.values())
                assert len(choices) <= 3
                assert len(choices) < 3 or choices[0] != choices[1]
            # whoever goes on to the end sees each of the others once
            for who, me in enumerate(everybody):
                if who not in looks:
                    while (found := offer_pair(votes, study, me)) is not None:
                        assert (who, found) not in seen
                        seen.add((who, found))
                        cast_vote(votes, study, found, me, "A")
            if not looks:
                assert all(
                    votes_needed(list(given.values())) == 0
                    for given in votes_by_name(votes, study).values()
                )


@given(st.lists(st.sampled_from(["A", "B", "tie"]), max_size=3))
def test_a_majority_is_there_when_no_vote_is_wanted_unless_all_three_differ(choices):
    said = majority_choice(choices)
    if votes_needed(choices) or len(set(choices)) == 3:
        assert said is None
    else:
        assert choices.count(said) >= 2


def test_what_somebody_looks_at_is_free_again_after_a_while(tmp_path, monkeypatch):
    people = People(tmp_path, 1, False)
    with (votes := people.votes):
        one, two, three = (
            register_annotator(votes, people.study, name) for name in ("one", "two", "three")
        )
        assert offer_pair(votes, people.study, one) == offer_pair(votes, people.study, two) == 1
        assert offer_pair(votes, people.study, three) is None
        later = time.time() + HOLD_SECONDS + 1
        monkeypatch.setattr("time.time", lambda: later)
        assert offer_pair(votes, people.study, three) == 1
        assert cast_vote(votes, people.study, 1, three, "A") == "recorded"
        assert cast_vote(votes, people.study, 1, one, "A") == "recorded"
        assert cast_vote(votes, people.study, 1, two, "A") == "not needed"  # who came back too late
        assert votes_by_name(votes, people.study) == {1: {"three": "A", "one": "A"}}


def test_conflicts_come_before_what_nobody_has_seen(tmp_path):
    people = People(tmp_path, 3, False)
    with (votes := people.votes):
        one, two, three = (
            register_annotator(votes, people.study, name) for name in ("one", "two", "three")
        )
        cast_vote(votes, people.study, 3, one, "A")
        cast_vote(votes, people.study, 3, two, "B")
        cast_vote(votes, people.study, 2, one, "A")
        assert offer_pair(votes, people.study, three) == 3
        cast_vote(votes, people.study, 3, three, "B")
        assert offer_pair(votes, people.study, three) == 2


def test_a_changed_vote_keeps_the_old_one_on_record_and_can_reopen_a_pair(tmp_path):
    people = People(tmp_path, 1, False)
    with (votes := people.votes):
        one, two = (register_annotator(votes, people.study, name) for name in ("one", "two"))
        with pytest.raises(UsageError, match="no vote to change"):
            cast_vote(votes, people.study, 1, one, "A", change=True)
        cast_vote(votes, people.study, 1, one, "A")
        cast_vote(votes, people.study, 1, two, "A")
        assert cast_vote(votes, people.study, 1, one, "B", change=True) == "changed"
        assert votes_by_name(votes, people.study) == {1: {"one": "B", "two": "A"}}
        # who came first is still the first
        assert list(votes_by_name(votes, people.study)[1]) == ["one", "two"]
        assert votes.count_replaced(people.study) == {one.id: 1}
        assert votes_needed(list(votes_by_name(votes, people.study)[1].values())) == 1
    connection = sqlite3.connect(tmp_path / VOTES_FILE)
    rows = connection.execute("SELECT choice, replaced IS NULL FROM votes ORDER BY id").fetchall()
    connection.close()
    assert rows == [("A", 0), ("A", 1), ("B", 1)]


def test_names_that_differ_in_case_are_one_person_and_odd_names_are_refused(tmp_path):
    people = People(tmp_path, 1, False)
    with (votes := people.votes):
        assert register_annotator(votes, people.study, " Ann  Lee ") == register_annotator(
            votes, people.study, "ann lee"
        )
        for wrong in ("", "   ", "a\x1b[2J", "x" * 81):
            with pytest.raises(UsageError):
                register_annotator(votes, people.study, wrong)


def test_a_secret_is_kept_as_a_digest_only_and_a_new_one_ends_the_old(tmp_path):
    people = People(tmp_path, 1, False)
    with (votes := people.votes):
        token = invite_annotator(votes, people.study, "Ann")
        study, person = find_invited(votes, token)
        assert (study, person.name) == (people.study, "Ann")
        again = invite_annotator(votes, people.study, "ann")
        assert find_invited(votes, token) is None
        assert find_invited(votes, again)[1] == person
        assert find_invited(votes, "") is None
    for path in tmp_path.glob(f"{VOTES_FILE}*"):
        assert token.encode() not in path.read_bytes()
        assert again.encode() not in path.read_bytes()


def test_other_files_are_left_alone(tmp_path):
    path = tmp_path / VOTES_FILE
    path.write_bytes(b"no database at all, just words" * 50)
    for reads in (True, False):
        with pytest.raises(StoreError, match="vote"):
            SqliteVotes(path, reads)
    assert path.read_bytes().startswith(b"no database")
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="move it to another folder"):
        SqliteVotes(path)
    assert path.read_bytes() == before


def test_a_file_of_votes_of_another_version_is_refused(tmp_path):
    path = tmp_path / VOTES_FILE
    SqliteVotes(path).__exit__(None, None, None)
    for version, said in ((2, "newer version of Parley"), (0, "is not a Parley vote file")):
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        for read_only in (True, False):
            with pytest.raises(StoreError, match=said):
                SqliteVotes(path, read_only)


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TRIGGER t AFTER INSERT ON votes BEGIN DELETE FROM votes; END",
        "ALTER TABLE votes RENAME TO old; CREATE VIEW votes AS SELECT * FROM old",
    ],
)
def test_a_file_of_votes_that_others_have_extended_is_refused(tmp_path, statements):
    path = tmp_path / VOTES_FILE
    SqliteVotes(path).__exit__(None, None, None)
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.close()
    for read_only in (True, False):
        with pytest.raises(StoreError, match="which Parley did not create"):
            SqliteVotes(path, read_only)


def test_what_fails_in_a_transaction_changes_nothing(tmp_path):
    people = People(tmp_path, 2, False)
    with (votes := people.votes):
        one = register_annotator(votes, people.study, "one")
        votes.hold_pair(people.study, one, 2, 60)
        with pytest.raises(UsageError, match="no pair 3"), votes.transaction():
            vote_twice(votes, people.study, one)
        assert votes.votes(people.study) == {1: {}, 2: {}}
        assert votes.held_pairs(people.study) == {2: {one.id}}


def vote_twice(votes, study, who):
    """One vote that can be recorded, and one that cannot."""
    cast_vote(votes, study, 2, who, "A")
    cast_vote(votes, study, 3, who, "A")


def test_a_folder_of_another_package_can_offer_a_sheet(tmp_path, monkeypatch):
    package = tmp_path / "some_talk"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "rule.py").write_text("class Talk:\n    pass\n")
    (package / "annotation.py").write_text(
        "from parley.annotation.sheets import Exchange, ItemText, SheetFormat\n"
        "SHEET = SheetFormat('points', {'clarity': 'is it clear?'}, "
        "lambda item: ItemText(item['id']), lambda calls: [Exchange('', 'hello', False)])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    kind = import_module("some_talk.rule").Talk
    assert format_of_task(kind).metric == "points"
    assert format_of_task(type("Other", (kind,), {})).criteria == {"clarity": "is it clear?"}
    assert format_of_task(dict) is format_of_task(None) is None


# ── figures ──


def ballots(rows):
    """(question, models, better side, votes as a text) → ballots; the letters are the votes of p1,
    p2, p3."""
    name = {"A": "A", "B": "B", "t": "tie"}
    return [
        Ballot("d", q, m, better, {f"p{n}": name[x] for n, x in enumerate(v, 1)})
        for q, m, better, v in rows
    ]


def test_kappa_and_agreement_by_hand():
    pair = ("x", "y")
    # p1 by p2: AA 4, BB 3, AB 2, BA 1 → observed 0.7, by chance 0.6·0.5 + 0.4·0.5 = 0.5, kappa 0.4
    rows = [(f"q{n}", pair, "A", "AA") for n in range(4)] + [
        (f"q{n}", pair, "A", "BB") for n in range(4, 7)
    ]
    rows += [
        ("q7", pair, "A", "ABA"),
        ("q8", pair, "A", "ABB"),
        ("q9", pair, "B", "BA"),
        ("q10", pair, "A", "A"),
    ]
    given = ballots(rows)
    found = kappa_of_first_votes(given)
    assert found.value == pytest.approx(0.4)
    assert (found.n, found.blocks, found.dropped) == (10, 10, 1)
    # few questions: in some draws of them one person always says the same, which counts as 0
    assert found.interval.low < 0 < 0.8 < found.interval.high
    spread = kappa_of_first_votes(
        ballots([(f"{q} {n}", *rest) for n in range(4) for q, *rest in rows])
    )
    assert spread.value == pytest.approx(0.4)
    assert 0 < spread.interval.low < 0.4 < spread.interval.high < 0.8
    huddled = kappa_of_first_votes(
        ballots([(f"{n}", *rest) for n in range(4) for _, *rest in rows])
    )
    assert huddled.interval.low is None  # the same votes on four questions
    assert kappa_between(given, "p1", "p2").value == pytest.approx(0.4)
    # a third sees only what two disagree on, which says nothing about chance
    assert kappa_between(given, "p1", "p3").n == 0
    order = agreement_with_scores(
        given
    )  # 4 + 0 + 1 + 0 of 9 settled: q9 wants a third vote, q10 a second
    assert order.value == pytest.approx(5 / 9)
    assert (order.n, order.blocks, order.dropped) == (9, 9, 2)
    assert win_rate(given, "x").value == pytest.approx(5 / 9)
    assert win_rate(given, "y").value == pytest.approx(4 / 9)


def test_ties_are_no_preference_and_half_a_win():
    given = ballots(
        [
            ("q1", ("x", "y"), "A", "tt"),
            ("q2", ("z", "x"), "B", "BB"),
            ("q3", ("x", "y"), "A", "ABt"),
        ]
    )
    assert agreement_with_scores(given).value == pytest.approx(1 / 2)
    assert agreement_with_scores(given).dropped == 1  # three who say three things
    assert win_rate(given, "x").value == pytest.approx(3 / 4)
    assert win_rate(given, "y").value == pytest.approx(1 / 2)
    assert win_rate(given, "z").value == 0
    assert win_rate(given, "nobody").value is None


def test_without_votes_nothing_is_known():
    given = ballots([("q1", ("x", "y"), "A", ""), ("q2", ("x", "y"), "B", "A")])
    for found in (kappa_of_first_votes(given), agreement_with_scores(given), win_rate(given, "x")):
        assert (found.value, found.n, found.interval.low) == (None, 0, None)


def test_results_count_everything(place):
    votes, study = studied(place, 6, seed=17)
    with votes:
        pairs = votes.pairs(study)
        ann, bob, cat = (register_annotator(votes, study, name) for name in ("ann", "bob", "cat"))
        higher = {
            number: "A" if pair.a.score > pair.b.score else "B" for number, pair in pairs.items()
        }
        # both sides are the better one at times
        assert [higher[number] for number in (1, 2, 3, 4)] == ["B", "A", "B", "B"]
        lower = {number: "B" if side == "A" else "A" for number, side in higher.items()}
        for number in (1, 2):
            cast_vote(votes, study, number, ann, higher[number])
            cast_vote(votes, study, number, bob, higher[number])
        # conflicts: one is settled for the order, one against it, one stays open
        for number in (3, 4, 5):
            cast_vote(votes, study, number, ann, higher[number])
            cast_vote(votes, study, number, bob, lower[number])
        cast_vote(votes, study, 3, cat, higher[3])
        cast_vote(votes, study, 4, cat, lower[4])
        cast_vote(votes, study, 6, cat, "A")
        cast_vote(votes, study, 6, cat, "B", change=True)
        data = summarise_votes(votes, study)
    assert data["pairs"] == {"drawn": 6, "settled": 4, "undecided": 0, "open": 2}
    assert {name: data["votes"][name] for name in ("given", "wanted", "changed", "for_tie")} == {
        "given": 13, "wanted": 2, "changed": 1, "for_tie": 0,
    }  # fmt: skip
    assert data["conflicts"] == {
        "found": 3,
        "for_the_order": 1,
        "against_it": 1,
        "tie": 0,
        "undecided": 0,
        "open": 1,
    }
    overall, samples = data["agreement"]
    assert (overall["dataset"], samples["dataset"]) == (None, "samples")
    assert overall["value"] == samples["value"] == pytest.approx(3 / 4)
    assert (overall["pairs"], overall["missing"]) == (4, 2)
    assert data["kappa"][0]["pairs"] == 5
    assert {each["name"]: each["votes"] for each in data["annotators"]} == {
        "ann": 5,
        "bob": 5,
        "cat": 3,
    }
    assert {(each["first"], each["second"]): each["pairs"] for each in data["between"]} == {
        ("ann", "bob"): 5,
    }
    assert sum(each["pairs"] for each in data["models"]) == 2 * 4
    shown = command("annotate", "results", "talk", cwd=place)
    for what, count in (
        ("conflicts", 3),
        ("conflicts settled for the higher score", 1),
        ("conflicts settled for the lower score", 1),
        ("conflicts not settled yet", 1),
    ):
        assert re.search(rf"^{what} +{count}$", shown.out, re.MULTILINE)
    assert (
        "\nconflicts,3\n"
        in command("annotate", "results", "talk", "--format", "csv", cwd=place).out
    )
    # one file, which can be copied
    assert [path.name for path in (place / "runs").glob(f"{VOTES_FILE}*")] == [VOTES_FILE]
    assert command("annotate", "results", "talk", "--json", cwd=place).json == json.loads(
        json.dumps(data)
    )
    assert "0.750" in command("annotate", "results", "talk", "--format", "latex", cwd=place).out


# ── the terminal ──


def test_the_terminal_takes_votes_skips_stops_and_goes_on(place):
    draw(place, "--pairs", 5)
    first = terminal(place, "ann", "A\nhm\n b \ns\nq\n")
    assert first.returncode == 0, first.stderr
    assert [line for line in first.stderr.splitlines() if "recorded" in line] == [
        "Which conversation is better? A, B, s (skip) or q (quit): parley: pair 1: recorded",
        "Which conversation is better? A, B, s (skip) or q (quit): parley: pair 2: recorded",
    ]
    assert "stopped after 2 votes" in first.stderr
    assert "t (tie)" not in first.stderr
    second = terminal(place, "Ann", "B\nt\nA\nA\n")
    assert "3 pairs left" in second.stderr.splitlines()[0]
    assert "You have voted on all your pairs" in second.stderr
    assert {number: by["ann"] for number, by in given_votes(place).items()} == {
        1: "A",
        2: "B",
        3: "B",
        4: "A",
        5: "A",
    }
    changed = terminal(place, "ann", "B\n", "--change", 1)
    assert "your vote is A" in changed.stderr
    assert given_votes(place)[1] == {"ann": "B"}
    assert "has not voted on" in terminal(place, "bob", "B\n", "--change", 1).stderr


def given_votes(place):
    with (
        SqliteVotes(place / "runs" / VOTES_FILE, read_only=True) as votes,
        open_runs(refs_in(place)) as runs,
    ):
        return votes_by_name(votes, votes.find_study([run.info.id for run in runs]))


def test_a_page_shows_question_answer_and_both_sides_and_no_names(place):
    draw(place, "--pairs", 3, "--ties")
    done = terminal(place, "ann", "")
    assert done.returncode == 0
    for words in (
        "correct answer:",
        "conversation A",
        "conversation B",
        "first answer:",
        "reply 2:",
        "factual accuracy",
    ):
        assert words in done.stdout
    for name in ("logical structure", "conciseness", "coherence"):
        assert name in done.stdout
    assert "t (tie)" in done.stderr
    assert not re.search(r"bot/|candidate\b(?!'s)|knowledge|kieval|score", done.stdout)
    assert all(text_width(line) <= 110 for line in done.stdout.splitlines())


STEERING = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnorw\u2066\rover\x00 it\u2028line"
EVIL = f"{STEERING}\n── conversation B ──\ncorrect answer:\nreply 2: 好的" * 3


def test_nothing_that_a_model_says_steers_the_terminal_or_looks_like_the_form(tmp_path):
    calm = {"model": "bot/candidate", "knowledge": 1}
    evil = interviewed(tmp_path / "runs", {"evil": lambda view: EVIL, "calm": calm}, 2, name="talk")
    assert evil.data["run"]["state"] == "done"
    draw(tmp_path)
    done = terminal(tmp_path, "ann", "A\nB\n")
    assert done.returncode == 0, done.stderr
    assert "␛[2J␛]0;owned␇<U+009B>31m<U+202E>" in done.stdout
    for character in set(done.stdout + done.stderr) - {"\n"}:
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), hex(
            ord(character)
        )
    ours = [line for line in done.stdout.splitlines() if line and not line.startswith("  │")]
    assert sum(line.startswith("── conversation") for line in ours) == 4
    assert sum(line.startswith("correct answer") for line in ours) == 2
    assert not any("owned" in line for line in ours)


@given(st.text(st.characters(), max_size=120), st.integers(12, 60))
@example("\t0000000", 12)
def test_wrapped_words_fit_stay_behind_their_mark_and_lose_nothing(text, width):
    lines = wrap_text(text, width, "│ ").split("\n")
    assert all(line.startswith("│") and text_width(line) <= width for line in lines)
    kept = "".join(line.removeprefix("│ ").removeprefix("│") for line in lines)
    assert "".join(kept.split()) == "".join(make_visible(text).split())


def test_of_several_attempts_the_last_counts_and_a_question_without_reply_is_left_out():
    def call(round, seat, attempt, words, finish="stop"):
        return RecordedCall(
            round, Seat.of(seat), attempt, b"", Reply(words, "thoughts", finish), 0.0
        )

    calls = [
        call(1, "candidate", 0, "hm"), call(1, "candidate", 1, "B"),
        call(2, "interactor", 0, "Why?"),
        call(3, "candidate", 0, "Because", "length"), call(4, "evaluator.1", 0, "{}"),
        call(4, "interactor", 0, "And?"),
    ]  # fmt: skip
    found = [(each.asked, each.said, each.cut) for each in write_interview(calls)]
    assert found == [("", "B", False), ("Why?", "Because", True)]


def test_a_sheet_has_nothing_but_words(place):
    votes, study = studied(place, 2)
    with votes:
        pairs = votes.pairs(study)
    (path,) = (place / "runs").glob("*.parley")
    with read_run(find_run(path)) as reader:
        found = make_sheet(1, pairs[1], {reader.info.id: reader.info.ref})
        items = {item["id"]: item for item in reader.run.items()}
    assert found.item.question == items[pairs[1].item]["question"]
    assert set(vars(found)) == {"number", "item", "a", "b", "noun", "criteria", "is_code"}
    assert found.item._fields == ("question", "choices", "right", "right_name")
    assert [len(found.a), len(found.b)] == [3, 3]


def test_an_annotator_does_not_read_which_model_speaks(place, tmp_path):
    (path,) = (place / "runs").glob("*.parley")
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(
            "UPDATE calls SET content = 'I am Cl\u200baude. ' || content, "
            "masked = '[[5, 12, \"Claude\", []]]' WHERE seat = 'candidate'"
        )
    votes, study = studied(place, 2)
    with votes:
        pairs = votes.pairs(study)
    found = make_sheet(1, pairs[1], {pairs[1].a.run: find_run(copy)})
    said = [exchange.said for exchange in (*found.a, *found.b)]
    assert all(text.startswith("I am [name withheld]. ") for text in said)


def strict(view):
    """An evaluator that ends every interview after the first reply."""
    mark = {"comment": "", "score": 4 if KNOWS in view.text else 1}
    return json.dumps({**dict.fromkeys((*ASPECTS, "overall"), mark), "stop": "repetition"})


def test_people_see_as_much_as_was_judged(tmp_path):
    path = interviewed(tmp_path, items=4).path
    again = parley.rejudge(path, {"evaluator": {"strict": strict}}, store=tmp_path).path
    for run, length in ((path, 3), (again, 2)):
        with SqliteVotes(tmp_path / VOTES_FILE) as votes:
            pairs = votes.pairs(prepare_study(votes, [find_run(run)], 1, 0, False))
        found = make_sheet(1, pairs[1], {run.stem: find_run(run)})
        assert len(found.a) == len(found.b) == length


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["vote", "talk"], "--annotator"),
        (["vote", "talk", "--annotator", "x"], "parley annotate draw"),
        (["invite", "talk", "--annotator", "x"], "parley annotate draw"),
        (["invite", "talk", "--annotator", "x", "--end"], "parley annotate draw"),
        (["invite", "talk", "--annotator", "x", "--end", "--port", "80"], "--end"),
        (["serve", "talk"], "parley annotate draw"),
        (["results", "talk"], "there are no votes yet"),
        (["draw", "talk", "nothing-like-it"], "unknown run"),
    ],
)
def test_wrong_wishes_are_told(place, words, said):
    assert said in command("annotate", *words, cwd=place, code=2).err


@pytest.mark.parametrize(
    "words", [["--traceback", "results", "talk"], ["results", "talk", "--traceback"]]
)
def test_a_traceback_is_printed_wherever_it_is_asked_for(place, words):
    assert "Traceback" in command("annotate", *words, cwd=place, code=2).err


def test_a_name_that_would_steer_a_terminal_is_refused(place):
    draw(place)
    words = ["annotate", "vote", "talk", "--annotator", "\x1b"]
    assert "annotator's name" in command(*words, cwd=place, code=2).err


def test_runs_in_different_folders_have_no_place_for_their_votes(place, tmp_path):
    (path,) = (place / "runs").glob("*.parley")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.parley").write_bytes(path.read_bytes())
    done = command("annotate", "draw", path, tmp_path / "other" / "x.parley", cwd=place, code=2)
    assert "one folder" in done.err


def test_invitations_print_a_link_and_can_be_ended(place):
    drawn = command("annotate", "draw", "talk", cwd=place)
    assert drawn.out.startswith("dataset")
    assert "drawn with random seed 0; you can change --pairs" in drawn.err
    words = ["annotate", "invite", "talk", "--annotator"]
    first = command(*words, "Ann", "--bind", "::1", "--port", "81", cwd=place)
    link = first.out.strip()
    assert re.search(r"annotate serve \S+\.parley --bind ::1 --port 81\n", first.err)
    assert "earlier link" not in first.err
    start, _, token = link.rpartition("/")
    assert start == "http://[::1]:81/vote"
    with SqliteVotes(place / "runs" / VOTES_FILE, read_only=True) as votes:
        assert find_invited(votes, token)[1].name == "Ann"
    done = command(*words, "Bob", "--json", cwd=place)
    assert done.json["annotator"] == "Bob"
    assert done.json["link"] == f"http://127.0.0.1:8642/vote/{done.json['token']}"
    again = command(*words, "bob", "--json", cwd=place)
    assert "the earlier link of bob no longer works" in again.err
    done = again
    command(*words, "ANN", "--end", cwd=place)
    with SqliteVotes(place / "runs" / VOTES_FILE, read_only=True) as votes:
        assert find_invited(votes, token) is None
        assert find_invitation(votes, token).ended
        assert find_invited(votes, done.json["token"])[1].name == "Bob"
    for name, said in (("Ann", "no invitation to end"), ("Bobby", "did you mean 'Bob'")):
        again = command(*words, name, "--end", cwd=place, code=2)
        assert said in again.err
    assert command("annotate", "draw", "talk", cwd=place).out.startswith("dataset")


# ── many people, and kills ──


def test_two_people_at_once_give_every_pair_its_votes(place):
    drawing = [
        subprocess.Popen(
            [sys.executable, "-m", "parley", "annotate", "draw", "talk", "--pairs", "12"],
            cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for process in drawing:  # all begin with a store in which there is no file of votes yet
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    words = [sys.executable, "-m", "parley", "annotate", "vote", "talk", "--annotator"]
    typed = {"ann": "A\n" * 20, "bob": "B\n" * 20, "cat": "A\n" * 20}
    sitting = {
        name: subprocess.Popen(
            [*words, name],
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in typed
    }
    for name, process in sitting.items():
        process.stdin.write(typed[name])
        process.stdin.close()
    for process in sitting.values():
        said = process.stderr.read()
        process.stderr.close()
        assert process.wait(60) == 0, said
    for name in typed:  # what somebody else held in the end
        assert terminal(place, name, "A\n" * 20).returncode == 0
    found = given_votes(place)
    assert len(found) == 12
    for by in found.values():
        choices = list(by.values())
        assert votes_needed(choices) == 0
        assert len(choices) == 2 or choices[0] != choices[1]


def test_one_person_at_two_places_has_one_vote_on_a_pair(place):
    draw(place, "--pairs", 8)
    words = [sys.executable, "-m", "parley", "annotate", "vote", "talk", "--annotator", "ann"]
    pipes = {
        "cwd": place,
        "stdin": subprocess.PIPE,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    here, there = (subprocess.Popen(words, **pipes) for _ in range(2))
    for process, key in ((here, "A\n"), (there, "B\n")):
        process.stdin.write(key * 16)
        process.stdin.close()
    for process in (here, there):
        said = process.stderr.read()
        process.stderr.close()
        assert process.wait(60) == 0, said
    assert all(len(by) == 1 for by in given_votes(place).values())
    with sqlite3.connect(place / "runs" / VOTES_FILE) as connection:
        assert connection.execute("SELECT COUNT(*), COUNT(replaced) FROM votes").fetchone() == (
            8,
            0,
        )
    connection.close()


VOTER = """
import sys
from pathlib import Path
from parley.annotation.pair_ballots import cast_vote, register_annotator, offer_pair
from parley.store.sqlite.votes_file import SqliteVotes

with SqliteVotes(Path(sys.argv[1])) as votes:
    study = votes.find_study(["r"])
    me = register_annotator(votes, study, "ann")
    while (pair := offer_pair(votes, study, me)) is not None:
        print(pair, cast_vote(votes, study, pair, me, "AB"[pair % 2]), flush=True)
"""


def test_kill_9_loses_no_vote_that_was_acknowledged(tmp_path):
    people, rng, told = People(tmp_path, 3000, False), random.Random(4), {}
    people.votes.__exit__(None, None, None)
    for sitting in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", VOTER, str(tmp_path / VOTES_FILE)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = [process.stdout.readline()]  # it votes
        time.sleep(rng.uniform(0, 0.15))
        os.kill(process.pid, signal.SIGKILL)
        rest, fault = process.communicate()
        assert process.returncode == -signal.SIGKILL, fault
        for line in [*lines, *rest.splitlines()]:
            if found := re.fullmatch(r"(\d+) recorded\n?", line):
                told[int(found[1])] = "AB"[int(found[1]) % 2]
        with SqliteVotes(tmp_path / VOTES_FILE, read_only=True) as votes:
            kept = {
                number: by["ann"] for number, by in votes_by_name(votes, people.study).items() if by
            }
        assert told.items() <= kept.items()
        # at the most one at each kill was recorded and not yet told
        assert len(kept) <= len(told) + sitting + 1
    assert len(told) > 8
    connection = sqlite3.connect(tmp_path / VOTES_FILE)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_killed_terminal_goes_on_where_it_was(place):
    draw(place, "--pairs", 5)
    words = [sys.executable, "-m", "parley", "annotate", "vote", "talk", "--annotator", "ann"]
    process = subprocess.Popen(
        words,
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("A\nB\n")
    process.stdin.flush()
    while "pair 3; you have given 2 votes" not in process.stderr.readline():
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    again = terminal(place, "ann", "B\nB\nB\n")
    # nobody else gets it meanwhile
    assert again.stderr.startswith("parley: pair 3; you have given 2 votes")
    assert {number: by["ann"] for number, by in given_votes(place).items()} == {
        1: "A",
        2: "B",
        3: "B",
        4: "B",
        5: "B",
    }


def test_a_run_that_is_gone_is_told(place):
    votes, study = studied(place, 2)
    with votes:
        pairs = votes.pairs(study)
    gone = RunRef(f"folder:{place}/runs", "gone", str(place / "runs" / "gone.parley"))
    with pytest.raises(ParleyError, match="no file"):
        make_sheet(1, pairs[1], {pairs[1].a.run: gone})


BROKEN_VOTES = {
    "runs that are no list": "UPDATE studies SET runs = '{' || runs",
    "a pair without an item": "UPDATE pairs SET a_match = 'x'",
    "a vote on no pair": "UPDATE votes SET pair = 9",
    "a vote for nobody": "UPDATE votes SET choice = 'C'",
    "a vote of nobody": "UPDATE votes SET annotator = 9",
}


@pytest.mark.parametrize("damage", BROKEN_VOTES.values(), ids=BROKEN_VOTES)
def test_a_damaged_file_of_votes_is_named(tmp_path, damage):
    people = People(tmp_path, 1, False)
    with (votes := people.votes):
        one = register_annotator(votes, people.study, "one")
        invited = invite_annotator(votes, people.study, "one")
        cast_vote(votes, people.study, 1, one, "A")
    with sqlite3.connect(tmp_path / VOTES_FILE) as connection:
        connection.execute(damage)
    connection.close()

    def read(votes):
        return find_invited(votes, invited), summarise_votes(votes, people.study)

    with (
        SqliteVotes(tmp_path / VOTES_FILE) as votes,
        pytest.raises(StoreError, match=rf"{VOTES_FILE} is damaged: "),
    ):
        read(votes)


def test_a_sheet_that_raises_is_named_with_its_line(place, monkeypatch):
    def breaks(calls):
        return calls["none"]

    sheet = replace(SHEET, write_exchanges=breaks)
    monkeypatch.setattr("parley.tasks.kieval.annotation.SHEET", sheet)
    draw(place)
    words = ("annotate", "vote", "talk", "--annotator", "me")
    done = command(*words, cwd=place, code=1)
    assert "the annotation sheet of the task kieval cannot show match" in done.err
    assert re.search(r"TypeError: .* \(test_annotation.py, line \d+\)", done.err)
    monkeypatch.setattr("parley.tasks.kieval.annotation.SHEET", None)
    assert "SHEET must be a SheetFormat" in command(*words, cwd=place, code=1).err


def test_one_annotator_gets_a_result(tmp_path):
    people = People(tmp_path, 3, False)
    with (votes := people.votes):
        one = register_annotator(votes, people.study, "one")
        for pair, choice in ((1, "A"), (2, "A"), (3, "B")):
            cast_vote(votes, people.study, pair, one, choice)
        alone = summarise_votes(votes, people.study)
        assert alone["single_annotator"]
        assert alone["pairs"]["settled"] == 0
        assert alone["agreement"][0]["pairs"] == 3
        assert alone["agreement"][0]["value"] is not None
        assert all(row["pairs"] == 3 for row in alone["models"])
        assert alone["kappa"][0]["value"] is None
        assert "only one annotator has voted" in result_tables(alone)[0].render()
        cast_vote(votes, people.study, 1, register_annotator(votes, people.study, "two"), "A")
        both = summarise_votes(votes, people.study)
        assert not both["single_annotator"]
        assert both["agreement"][0]["pairs"] == 1
