"""Pages of matches: every fitting match once, under any filters and order."""

import asyncio
import shutil
import sqlite3
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.config.identity import metric_facts
from parley.match.match import Outcome
from parley.match.protocol import Reply, Usage
from parley.match.record import RecordedCall
from parley.plans import MatchSpec
from parley.results.run_facts import group_attempts
from parley.rules.notes import WrittenNote
from parley.rules.pool import Seat
from parley.rules.referee import Violation
from parley.rules.task import Metric
from parley.store import open_store, read_run
from parley.store.changes import find_changes
from parley.store.config import Config
from parley.store.match_search import ORDERS, MatchPlace, MatchSearch
from parley.store.reader import match_places
from parley.store.sqlite.run_file import SqliteReader
from parley.store.sqlite.schema import SAME_SUMS
from parley.store.types import NewRun

ALIASES = ["a", 'b"', "ü:1"]
CONFIG = Config("t", {}, {alias: {"model": "bot/x"} for alias in ALIASES}, ALIASES)
IDENTITY = {
    "task": "t",
    "version": 1,
    "rule": "",
    "prompts": {},
    "parley": "0",
    "python": "3",
    "json_repair": "0",
    "items": None,
    "texts": {},
    "roles": {"players": "contestant", "judge": "instrument"},
    "seats": {"players": 2, "judge": 2},
    "metrics": [metric_facts(Metric("points", 0, 4, 0.1)), metric_facts(Metric("time", 0, 9, 1))],
}
FIRST, SECOND = Seat("players", 1), Seat("players", 2)
COUNT = 60


def spec_of(n):
    seats = {FIRST: ALIASES[n % 3], SECOND: ALIASES[(n // 3) % 3]}
    unscored = frozenset([SECOND]) if n % 11 == 0 else frozenset()
    return MatchSpec(n, str(n), [None, "one", "two"][n % 3], 1, n, seats, unscored)


def outcome_of(n):
    if n % 13 == 0:
        return Outcome("aborted", "gave up", {}, 1, [], [])
    second = None if n % 7 == 0 else float(n * 3 % 5)
    scores = {FIRST: {"points": float(n % 5), "time": float(n % 9)}, SECOND: {"points": second}}
    tries = [
        Violation(1, FIRST, attempt, "format", "no number", outcome)
        for attempt, outcome in enumerate(["retried", "default"] * (n % 5 == 0))
    ]
    votes = {"judge.1": {"players.1": {"score": 3}}, "judge.2": {"players.1": {"score": 3 + n % 4}}}
    notes = [WrittenNote(1, {"votes": votes}, "votes")] if n % 2 else []
    return Outcome("done", "", scores, 1, tries, notes)


def play(store):
    """A run of sixty matches; the last ten have not ended."""

    async def main():
        journal = await store.create(NewRun("run", CONFIG, IDENTITY))
        await journal.add_matches([spec_of(n) for n in range(1, COUNT + 1)])
        for n in range(1, COUNT - 9):
            record = journal.lease(spec_of(n))
            reply = Reply("hello", usage=Usage(tokens_in=n * 7 % 40, tokens_out=1))
            await record.append(RecordedCall(1, FIRST, 0, b"view", reply, 1.0))
            await journal.finish(n, outcome_of(n))
        await journal.fail(COUNT, "no connection")
        await journal.set_state("stopped", "interrupted", "")
        await journal.close()
        return journal.ref

    return asyncio.run(main())


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return Path(play(open_store(tmp_path_factory.mktemp("search"))).location)


@pytest.fixture(scope="module")
def run_in_database(postgres_url):
    return play(open_store(postgres_url))


def expected(reader, wanted):
    """The numbers that a search should find, from the whole record."""
    scores = reader.scores.by_match()
    faults = {
        number: len(list(tries))
        for number, tries in groupby(
            group_attempts(reader.violations.read()), key=lambda tries: tries[0].match
        )
    }
    found = []
    for row in reader.matches.read():
        n, is_over = row.number, row.has_ended
        held = [alias for seat, alias in row.seats.items() if wanted.role in ("", seat.role)]
        fits = [
            (by[wanted.metric], seat.key)
            for seat, by in scores.get(n, {}).items()
            if by.get(wanted.metric) is not None
            and wanted.model in ("", row.seats[seat])
            and wanted.role in ("", seat.role)
            and seat not in row.unscored
            and (wanted.low is None or by[wanted.metric] >= wanted.low)
            and (wanted.high is None or by[wanted.metric] <= wanted.high)
        ]
        apart = n % 4 if is_over and n % 2 and n % 13 else None
        if (
            (wanted.model and wanted.model not in held)
            or wanted.item not in (None, row.item)
            or (wanted.states and row.state not in wanted.states)
            or (wanted.violations and not faults.get(n))
            or (wanted.apart is not None and (apart is None or apart < wanted.apart))
            or (wanted.metric and not fits)
        ):
            continue
        keys = {
            "number": n,
            "seconds": row.ended - row.began if is_over else -1,
            "tokens": n * 7 % 40 + 1 if is_over else -1,
        }
        if wanted.order == "score":
            value, seat = (max if wanted.descending else min)(fits)
            found.append(MatchPlace(value, n, seat))
        else:
            found.append(MatchPlace(keys[wanted.order], n))
    return [place.number for place in sorted(found, reverse=wanted.descending)]


def walk(reader, wanted):
    """All pages from the first to the last, and back again."""
    ahead, page = [], reader.matches.search(wanted)
    ahead += [page]
    while page.next is not None:
        page = reader.matches.search(replace(wanted, after=page.next))
        ahead.append(page)
    numbers = [each.row.number for page in ahead for each in page.matches]
    back = [[each.row.number for each in page.matches]]
    while page.previous is not None:
        page = reader.matches.search(replace(wanted, before=page.previous))
        back.append([each.row.number for each in page.matches])
    return numbers, [number for page in reversed(back) for number in page], ahead


searches = st.builds(
    MatchSearch,
    model=st.sampled_from(["", *ALIASES]),
    role=st.sampled_from(["", "players", "judge"]),
    item=st.sampled_from([None, "one", "none"]),
    metric=st.sampled_from(["points", "time"]),
    low=st.sampled_from([None, 1.0, 3.5]),
    high=st.sampled_from([None, 2.0, 0.5]),
    violations=st.booleans(),
    states=st.sampled_from([frozenset(), frozenset(["done"]), frozenset(["aborted", "failed"])]),
    apart=st.sampled_from([None, 1.0, 3.0]),
    order=st.sampled_from(ORDERS),
    descending=st.booleans(),
    most=st.sampled_from([1, 3, 7]),
)


@given(
    wanted=searches,
    scored=st.booleans(),
    few=st.sampled_from([0, 5, 100]),
    kind=st.sampled_from(["file", "database"]),
)
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_walking_all_pages_gives_every_fitting_match_once(
    path, run_in_database, monkeypatch, wanted, scored, few, kind
):
    for name, value in (("FEW", few), ("FIRST_STEPS", 4), ("MORE_STEPS", 6)):
        monkeypatch.setattr(match_places, name, value)
    if not scored and wanted.order != "score":
        wanted = replace(wanted, metric="", low=None, high=None)
    with SqliteReader(path) if kind == "file" else read_run(run_in_database) as reader:
        numbers, back, pages = walk(reader, wanted)
        assert numbers == expected(reader, wanted)
        assert back == numbers
        assert all(len(page.matches) <= wanted.most for page in pages)


def test_sums_of_a_record_are_the_same_in_files_and_databases(path, run_in_database):
    with SqliteReader(path) as reader, read_run(run_in_database) as stored:
        whole = MatchSearch(most=COUNT)
        sums, stored_sums = (
            [(each.row.number, each.violations, each.apart, each.tokens) for each in found.matches]
            for found in (each.matches.search(whole) for each in (reader, stored))
        )
    assert sums == stored_sums
    assert sums[4] == (5, 1, 1.0, 36)  # two attempts at one reply are one violation
    assert sums[1] == (2, 0, None, 15)  # no judges
    assert sums[-1] == (COUNT, None, None, None)  # it has not ended


def test_changed_sums_are_found_by_an_audit(path, tmp_path):
    changed = shutil.copy(path, tmp_path / "run.parley")
    with sqlite3.connect(changed) as connection:
        connection.execute("UPDATE matches SET tokens = 1 WHERE number = 3")
        (fault,) = find_changes(connection, SAME_SUMS)
    connection.close()
    assert fault.match == 3
    assert "lists of matches" in fault.detail


def test_a_search_uses_the_indexes(path, monkeypatch):
    """No page scans the table of matches or sorts all scores."""
    monkeypatch.setattr(match_places, "FIRST_STEPS", 2)
    with SqliteReader(path) as reader:
        plans = {}
        run = reader.snapshot._connection.execute
        for order in ("score", "tokens"):
            metric = "points" if order == "score" else ""
            item = "none" if order == "score" else None
            wanted = MatchSearch(metric=metric, order=order, item=item, violations=True)
            asked = []

            def remember(query, *values, asked=asked):
                asked.append((query, values))
                return run(query, values)

            match_places.PlaceFinder(
                remember, reader.snapshot.dialect, wanted, reader.info.identity["seats"]
            ).find()
            plans[order] = " ".join(
                row[3]
                for query, values in asked
                for row in run(f"EXPLAIN QUERY PLAN {query}", values)
            )
    assert "USING COVERING INDEX scores_listed (metric=?" in plans["score"]
    assert "USING INDEX matches_by_tokens" in plans["tokens"]
    assert "USING COVERING INDEX matches_listed" in plans["tokens"]
    assert "SEARCH s USING PRIMARY KEY (match=?)" in plans["score"]
    assert "SEARCH o USING PRIMARY KEY (match=?)" in plans["score"]
    assert "USING COVERING INDEX matches_listed (state=? AND item=?" in plans["score"]
