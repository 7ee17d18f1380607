"""Results need no query per match: a larger run takes as many SQL statements as a small one."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

import parley
from parley import Result
from parley.config.task_catalogue import task_class
from parley.rules.pool import Seat
from parley.store import read_run
from parley.store.sqlite import run_file

JUDGES = {"judge": {"first": "bot/judge", "second": "bot/judge"}}
RUNS = {
    "public_goods": (["free-rider", "altruist", "random"], {"rounds": 2}),
    "word_guessing": (["guesser", "guesser", "guesser"], {"items": 2, "rounds": 2}),
    "idiom_solitaire": (["speaker", "speaker"], {"rounds": 4}),
    "qa": (["student", "learner"], {"items": 3}),
    "kieval": (
        ["candidate", "candidate"],
        {
            "items": 2,
            "rounds": 1,
            "roles": {"interactor": "bot/interactor", "evaluator": "bot/evaluator"},
        },
    ),
    "translation": (["translator", "translator"], {"items": 2, "roles": JUDGES}),
}


@contextmanager
def trace_statements(monkeypatch) -> Iterator[list[str]]:
    """The statements of the runs that are opened meanwhile."""
    found: list[str] = []
    connect = run_file.connect_to_read

    def traced(*given, **options):
        connection = connect(*given, **options)
        connection.set_trace_callback(found.append)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(run_file, "connect_to_read", traced)
        yield found


def list_statements(monkeypatch, run, task) -> list[str]:
    """The statements of a whole result, with all parts, tables and figures."""
    with trace_statements(monkeypatch) as found:
        result = Result(run.ref, task=task_class(task))
        assert result.data["results"]
        for part in result.parts:
            result.tables(part)
            result.figures(part)
    return found


@pytest.mark.parametrize("task", RUNS)
def test_statements_do_not_grow_with_matches(task, tmp_path, monkeypatch) -> None:
    bots, options = RUNS[task]
    models = {f"{bot}-{n}": {"model": f"bot/{bot}"} for n, bot in enumerate(bots)}
    counts = []
    for repeats in (3, 9):
        run = parley.run(
            task, models, store=tmp_path, repeats=repeats, seed=1, name=f"{repeats}", **options
        )
        found = list_statements(monkeypatch, run, task)
        counts.append(len(found))
        usage = [each for each in found if "TOTAL(c.tokens_out)" in each]
        assert len(usage) == len(set(usage)) == 1  # all calls are read once for it
        with trace_statements(monkeypatch) as of_matches:
            assert Result(run.ref).matches
        counts[-1] += len(of_matches)
    assert counts[0] == counts[1]


def test_scores_and_replies_are_not_sorted(tmp_path, monkeypatch) -> None:
    """A database that sorts millions of rows takes longer than everything else, and much memory."""
    bots, options = RUNS["translation"]
    models = {f"{bot}-{n}": {"model": f"bot/{bot}"} for n, bot in enumerate(bots)}
    run = parley.run("translation", models, store=tmp_path, **options)
    streams = [
        each
        for each in list_statements(monkeypatch, run, "translation")
        if each.startswith(("SELECT match, seat", "SELECT number, block", "SELECT match, round"))
    ]
    assert {each.partition(" FROM ")[2].split()[0] for each in streams} == {
        "scores",
        "matches",
        "calls",
        "notes",
    }
    with closing(sqlite3.connect(run.path)) as connection:
        for each in streams:
            steps = connection.execute(f"EXPLAIN QUERY PLAN {each}").fetchall()
            assert not any("TEMP B-TREE" in step[3] for step in steps), each


def test_the_lengths_of_replies_are_added_up_by_seat(tmp_path) -> None:
    run = parley.run("public_goods", ["bot/random", "bot/gradual"], rounds=3, store=tmp_path)
    with read_run(run.ref) as reader:
        wanted = Counter[tuple[int, Seat]]()
        for match in reader.matches.read():
            for call in reader.calls.of(match.number):
                wanted[match.number, call.seat] += len(call.reply.content)
        assert all(len(reader.calls.of(match)) == 6 for match, _ in wanted)
        assert {(match, seat): n for match, seat, n in reader.usage.reply_lengths()} == wanted
