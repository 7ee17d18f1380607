"""An audit reads a record in pages, and finds what it would find with everything in memory."""

import shutil
import sqlite3
from dataclasses import asdict
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley.audit.audit import audit_run
from parley.audit.equal_information import OpeningWords, collect_opening_words
from parley.audit.plan_replay import PlanReplay
from parley.audit.replay import describe_difference
from parley.errors import StoreError
from parley.plans import Done
from parley.plans.choice import choose_plan
from parley.rules.pool import Seat
from parley.store import changes, read_run
from parley.store.reader import whole_matches
from parley.store.sqlite.run_file import SqliteReader, SqliteSnapshot
from parley.store.types import MatchRow, SeatingCount
from parley.tasks.public_goods import PublicGoods

MODELS = {"a": "bot/free-rider", "b": "bot/altruist", "c": "bot/random"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of 4 and 16 repeats with 6 matches each, and one with judges and notes."""
    store = tmp_path_factory.mktemp("runs")
    found = {
        repeats: parley.run(
            "public_goods",
            MODELS,
            plan="round_robin",
            seats=2,
            repeats=repeats,
            rounds=1,
            store=store,
        ).ref
        for repeats in (4, 16)
    }
    writers = {"x": "bot/translator", "y": {"model": "bot/translator", "strength": 0.3}}
    judged = parley.run("translation", writers, roles={"judge": "bot/judge"}, items=2, store=store)
    return found | {"judged": judged.ref}


@pytest.fixture
def small_pages(monkeypatch):
    for module in (changes, whole_matches):
        monkeypatch.setattr(module, "AT_ONCE", 5)


@pytest.mark.parametrize("run", [4, "judged"])
def test_a_page_has_what_single_matches_have(runs, run, small_pages):
    with read_run(runs[run]) as found:
        wholes = list(found.whole_matches.read())
        assert [whole.match for whole in wholes] == list(found.matches.read())
        for whole in wholes:
            number = whole.match.number
            assert found.whole_matches.of(whole.match) == whole
            assert whole.calls == found.calls.of(number)
            assert whole.messages == found.messages.of(number)
            assert whole.effects == found.effects.of(number)
            assert whole.scores == found.scores.of(number)
            assert whole.violations == list(found.violations.read(number))
            assert whole.notes == found.notes.of(number)
        assert all(whole.notes for whole in wholes)


def test_violations_are_read_with_their_page(runs, tmp_path):
    path = shutil.copy(runs[4].location, tmp_path / "changed.parley")
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO violations VALUES "
            "(3, 0, 1, 'players.1', 0, 'format', 'no text', 'retried')"
        )
    connection.close()
    with SqliteReader(path) as found:
        (whole,) = [whole for whole in found.whole_matches.read() if whole.violations]
        assert whole.violations == list(found.violations.read(3))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE violations SET seat = 'players.9'")
    connection.close()
    with (
        SqliteReader(path) as found,
        pytest.raises(StoreError, match="no model held the seat"),
    ):
        list(found.whole_matches.read())


def test_an_audit_does_not_depend_on_the_size_of_pages(runs, tmp_path, monkeypatch):
    path = shutil.copy(runs[16].location, tmp_path / "changed.parley")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE calls SET content = 'other' WHERE match IN (7, 30)")
        connection.execute("UPDATE scores SET value = 1 WHERE match = 50")
        connection.execute("DELETE FROM matches WHERE number = 60")
    connection.close()
    ref = SqliteReader(path).info.ref
    whole = asdict(audit_run(ref))
    assert {7, 30, 50, 60} <= {breach["match"] for breach in whole["breaches"]}
    for module in (changes, whole_matches):
        monkeypatch.setattr(module, "AT_ONCE", 7)
    assert asdict(audit_run(ref)) == whole


def test_an_audit_makes_no_query_for_each_match(runs, monkeypatch):
    """Matches of both runs fit into one page."""
    queries = count()
    rows = SqliteSnapshot.rows

    def counted(self, query, *values):
        next(queries)
        return rows(self, query, *values)

    monkeypatch.setattr(SqliteSnapshot, "rows", counted)
    made = []
    for run in (4, 16):
        before = next(queries)
        assert not audit_run(runs[run]).breaches
        made.append(next(queries) - before)
    assert made[0] == made[1]


def test_seatings_are_counted_by_item(runs):
    with read_run(runs["judged"]) as found:
        seatings = list(found.matches.count_seatings())
        matches = list(found.matches.read())
        assert sum(each.matches for each in seatings) == len(matches)
        assert {each.place for each in seatings} == {f"item {match.item}" for match in matches}
        assert found.matches.stages() == [(0, "")]
        assert found.matches.stages_with_shared_tables() == {(0, "")}
        assert all(isinstance(each, SeatingCount) for each in seatings)


def test_a_plan_is_compared_with_the_record_number_by_number(runs):
    with read_run(runs[4]) as found:
        plan = choose_plan("round_robin", PublicGoods(rounds=1), list(MODELS), {}, [], 4, 0, size=2)
        rows = list(found.matches.read())
        replay = PlanReplay(plan, found)
        assert list(replay.compare(rows)) == [(row, row.spec) for row in rows]
        assert replay.end == Done("plan_complete")
        few = PlanReplay(plan, found).compare([rows[1], rows[-1]])
        assert [(row and row.number, spec.number) for row, spec in few] == [
            (number if number in (2, 24) else None, number) for number in range(1, 25)
        ]


class Conversations:
    """A reader of matches with their messages."""

    def __init__(self, matches):
        told = {match.number: messages for match, messages in matches}
        self.matches = SimpleNamespace(read=lambda: (match for match, _ in matches))
        self.messages = SimpleNamespace(of=told.__getitem__)


def find_unequal_in_memory(matches):
    """The same with all words in memory."""
    heard, found = {}, {}
    for match, messages in matches:
        told = collect_opening_words(messages, [seat.key for seat in match.seats])
        for seat, words in told.items():
            by_words = heard.setdefault((match.block, match.repeat, seat), {})
            by_words.setdefault(words, []).append(match.number)
    for (block, _, seat), by_words in heard.items():
        usual = max(by_words, key=lambda words: len(by_words[words]))
        for words, numbers in by_words.items():
            if words != usual:
                for number in numbers:
                    found[number] = (
                        f"{seat}: the opening prompt differs from that in match "
                        f"{by_words[usual][0]} (block {block}): "
                        f"{describe_difference(usual, words, 'there', 'here')}"
                    )
    return sorted(found.items())


@given(
    st.lists(
        st.tuples(
            st.sampled_from("xy"),
            st.integers(1, 2),
            st.lists(st.sampled_from(["", "hello", "other"]), min_size=2, max_size=2),
        ),
        max_size=12,
    )
)
def test_unequal_opening_words_are_found_by_their_digests(given):
    matches = []
    for number, (block, repeat, words) in enumerate(given, 1):
        seats = {Seat("one"): "a", Seat("two"): "b"}
        row = MatchRow(
            *(number, block, None, repeat, 0, seats, frozenset()),
            *("done", None, 1, None, None),
        )
        messages = [
            {"kind": "tell", "audience": [seat.key], "content": said}
            for seat, said in zip(seats, words, strict=True)
            if said
        ]
        matches.append((row, messages))
    opening = OpeningWords()
    for row, messages in matches:
        opening.add_match(row, messages, confirmed=True)
    assert list(opening.find_unequal(Conversations(matches))) == find_unequal_in_memory(matches)
